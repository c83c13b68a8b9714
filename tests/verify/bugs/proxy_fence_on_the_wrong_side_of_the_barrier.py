# expect: TW2003
# hint: add tw.fence_async() after line 16
# rebuilds: fence.proxy.async issued by one thread after the barrier
"""The fence comes after the barrier: it orders nothing that the other warps wrote."""
import tilewright as tw
from tilewright import bf16

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n]", threads=128)
def copy(X: tw.Tensor(bf16, M, N), Y: tw.Tensor(bf16, M, N)):
    tw.assume(N % 8 == 0)
    bn, bm = tw.grid(tw.cdiv(N, 64), tw.cdiv(M, 64))
    s = tw.shared(bf16, (64, 64), swizzle=128)
    tw.store(s, tw.load(X[bm * 64 : bm * 64 + 64, bn * 64 : bn * 64 + 64], fill=0.0))
    tw.sync()
    tw.fence_async()
    tw.tma_store(Y[bm * 64, bn * 64], s)  # here
    tw.tma_store_commit()
    tw.tma_store_wait(0)
