# expect: TW2003
# hint: add tw.fence_async() after line 16
# rebuilds: missing fence.proxy.async before a TMA store
"""Ordinary stores fill the source of a TMA store, and nothing makes them visible to the asynchronous proxy."""
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
    tw.tma_store(Y[bm * 64, bn * 64], s)  # here
    tw.tma_store_commit()
    tw.tma_store_wait(0)
