"""BUG: the barrier between two lives is left out after 1000"""
import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")

@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n]", threads=128)
def copy(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.grid(1)
    a = tw.shared(f32, (2, 4, 32))
    b = tw.overlay(a, f32, (2, 4, 32), offset_bytes=0)
    left = 1000
    tw.assume(M <= 4)
    for c in tw.range(tw.cdiv(N, 32)):
        tw.store(a[0], tw.load(X[0:4, c * 32 : c * 32 + 32], fill=0.0))
        tw.sync()
        x = tw.load(a[0], layout=tw.rows())
        if left > 0:
            tw.sync()
        tw.store(b[left % 1], x)
        tw.sync()
        tw.store(Y[0, c * 32], tw.load(b[0]))
        tw.sync()
        left = left - 1
