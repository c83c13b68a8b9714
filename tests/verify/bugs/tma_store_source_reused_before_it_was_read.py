# expect: TW2001
# hint: add tw.tma_store_wait(0) after line 21
# rebuilds: epilogue buffer refilled before the TMA store has read it
"""The staging tile is written again while the TMA store may still read it."""
import tilewright as tw
from tilewright import bf16

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n]", threads=128)
def copy(X: tw.Tensor(bf16, M, N), Y: tw.Tensor(bf16, M, N)):
    tw.assume(N % 8 == 0)
    bm = tw.grid(tw.cdiv(M, 64))
    s = tw.shared(bf16, (64, 64), swizzle=128)
    for c in tw.range(tw.cdiv(N, 64)):
        tw.sync()
        tw.store(s, tw.load(X[bm * 64 : bm * 64 + 64, c * 64 : c * 64 + 64], fill=0.0))  # here
        tw.fence_async()
        tw.sync()
        tw.tma_store(Y[bm * 64, c * 64], s)  # here
        tw.tma_store_commit()
    tw.tma_store_wait(0)
