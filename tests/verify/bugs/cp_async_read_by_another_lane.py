# expect: TW2001
# hint: add tw.sync() before line 18
# rebuilds: cp.async.wait_group taken for a barrier
"""A thread's wait covers its own copies; another lane of the warp reads them without a barrier."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[n, m] = X[m, n]", threads=32)
def transpose(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, M)):
    bn, bm = tw.grid(tw.cdiv(N, 32), tw.cdiv(M, 32))
    s = tw.shared(f32, (32, 32))
    tw.cp_async(s, X[bm * 32, bn * 32])  # here
    tw.cp_async_commit()
    tw.cp_async_wait(0)
    tw.store(Y[bn * 32, bm * 32], tw.load(s.T))  # here
