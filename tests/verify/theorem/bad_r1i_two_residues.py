"""BUG: the buffer has room for shifts up to 77; K % 40 + N % 40 may be 78"""
import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")

@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] + 0.0 * Z[0]", threads=128)
def copy(X: tw.Tensor(f32, M, N), Z: tw.Tensor(f32, K), Y: tw.Tensor(f32, M, N)):
    tw.assume(N <= 1024)
    tw.assume(K >= 1)
    s = tw.shared(f32, (1054,))
    shift = 30 + 2 * (1 if K % 29 == 17 else 0) * (1 if N % 31 == 23 else 0)
    for t in tw.persistent(M):
        tw.sync()
        tw.store(s[shift : shift + 1024], tw.load(X[t, 0:1024], fill=0.0))
        tw.sync()
        tw.store(Y[t, 0:1024], tw.load(s[shift : shift + 1024]))
