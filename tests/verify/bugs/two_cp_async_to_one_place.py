# expect: TW2001
# hint: line 16: leave this copy out: there is one too many
# rebuilds: cp.async: no order among the asynchronous copies of one thread
"""The second copy is meant to replace the first; cp.async gives no order between the two."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n]")
def replaced(W: tw.Tensor(f32, M, N), X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N % 4 == 0)
    bm, bn = tw.grid(tw.cdiv(M, 32), tw.cdiv(N, 32))
    s = tw.shared(f32, (32, 32))
    tw.cp_async(s, W[bm * 32 : bm * 32 + 32, bn * 32 : bn * 32 + 32])  # here
    tw.cp_async(s, X[bm * 32 : bm * 32 + 32, bn * 32 : bn * 32 + 32])  # here
    tw.cp_async_commit()
    tw.cp_async_wait(0)
    tw.sync()
    tw.store(Y[bm * 32, bn * 32], tw.load(s))
