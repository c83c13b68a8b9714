"""BUG: irregular: ring slipped in row 1000"""
import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")

@tw.kernel(target="sm_80", computes="Y[m] = sum(n in 0:minimum(N, 32 * (m // 4 + 1)), X[m, n])", threads=128)
def tri(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    tw.grid(1)
    s = tw.shared(f32, (4, 4, 32))
    n = 0
    off = 0
    for m in tw.range(tw.cdiv(M, 4)):
        acc = tw.zeros(f32, (4, 32))
        if m == 1000:
            off = 3
        for c in tw.range(tw.min(m + 1, tw.cdiv(N, 32))):
            tw.store(s[(n + off) % 4], tw.load(X[m * 4 : m * 4 + 4, c * 32 : c * 32 + 32], fill=0.0))
            tw.sync()
            acc = acc + tw.load(s[(n + off) % 4], layout=tw.rows())
            n = n + 1
        tw.store(Y[m * 4 : m * 4 + 4], tw.sum(acc, axis=1))
