# expect: proved
"""64 elements copied by 128 threads are copied once: no race of a copy with itself."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n]", threads=128)
def copy(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    bn, m = tw.grid(tw.cdiv(N, 64), M)
    s = tw.shared(f32, (64,))
    tw.cp_async(s, X[m, bn * 64])
    tw.cp_async_commit()
    tw.cp_async_wait(0)
    tw.sync()
    tw.store(Y[m, bn * 64 : bn * 64 + 64], tw.load(s))
