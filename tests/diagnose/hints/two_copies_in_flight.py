# expect: TW2001 TW2005
# hint: `tw.cp_async_wait(0)` instead of `tw.cp_async_wait(1)`
"""The wait leaves the one group in flight."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n]", threads=128)
def copy(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N % 4 == 0)
    bm, bn = tw.grid(tw.cdiv(M, 32), tw.cdiv(N, 32))
    s = tw.shared(f32, (32, 32))
    tw.cp_async(s, X[bm * 32, bn * 32])
    tw.cp_async_commit()
    tw.cp_async_wait(1)  # here
    tw.sync()
    tw.store(Y[bm * 32, bn * 32], tw.load(s))
