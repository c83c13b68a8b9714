# expect: TW2004 TW2001
# hint: add tw.tma_store_wait(0) after line 19
# rebuilds: kernel exits while a bulk store still reads shared memory
"""The block ends, and its shared memory goes, while the TMA store may still read it."""
import tilewright as tw
from tilewright import bf16

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n]", threads=128)
def copy(X: tw.Tensor(bf16, M, N), Y: tw.Tensor(bf16, M, N)):
    tw.assume(N % 8 == 0)
    bn, bm = tw.grid(tw.cdiv(N, 64), tw.cdiv(M, 64))
    s = tw.shared(bf16, (64, 64), swizzle=128)
    tw.store(s, tw.load(X[bm * 64 : bm * 64 + 64, bn * 64 : bn * 64 + 64], fill=0.0))
    tw.fence_async()
    tw.sync()
    tw.tma_store(Y[bm * 64, bn * 64], s)  # here
    tw.tma_store_commit()
