"""BUG: as w08, but from N > 5000 any"""
import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")

@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n]", threads=128)
def nested(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N % 64 == 32 or N > 50000)
    tw.grid(1)
    s = tw.shared(f32, (2, 4, 32))

    for m in tw.range(tw.cdiv(M, 4)):
        for c in tw.range(tw.cdiv(N, 32)):
            tw.store(s[(m + c) % 2], tw.load(X[m * 4 : m * 4 + 4, c * 32 : c * 32 + 32], fill=0.0))
            tw.sync()
            tw.store(Y[m * 4, c * 32], tw.load(s[(m + c) % 2], layout=tw.rows()))

