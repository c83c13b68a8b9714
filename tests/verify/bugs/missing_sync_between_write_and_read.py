# expect: TW2001
# hint: add tw.sync() before line 16
# rebuilds: shared-memory transpose without __syncthreads
"""A transpose through shared memory without a barrier: warps read what others have not written yet."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[n, m] = X[m, n]", threads=128)
def transpose(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M)):
    bn, bm = tw.grid(tw.cdiv(N, 32), tw.cdiv(M, 32))
    s = tw.shared(f32, (32, 32), pad=1)
    tw.store(s, tw.load(X[bm * 32 : bm * 32 + 32, bn * 32 : bn * 32 + 32], fill=0.0))  # here
    tw.store(Y[bn * 32, bm * 32], tw.load(s.T))  # here
