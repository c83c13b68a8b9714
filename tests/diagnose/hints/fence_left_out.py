# expect: TW2003
# hint: add tw.fence_async()
"""TMA reads what ordinary stores wrote, without a proxy fence."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n]", threads=128)
def copy(X: tw.Tensor(bf16, M, N), Y: tw.Tensor(bf16, M, N)):
    tw.assume(N % 8 == 0)
    bm, bn = tw.grid(tw.cdiv(M, 64), tw.cdiv(N, 64))
    s = tw.shared(bf16, (64, 64), swizzle=128)
    tw.store(s, tw.load(X[bm * 64 : bm * 64 + 64, bn * 64 : bn * 64 + 64], fill=0.0))  # here
    tw.sync()
    tw.tma_store(Y[bm * 64, bn * 64], s)
    tw.tma_store_commit()
    tw.tma_store_wait(0)
