"""BUG: at c == 1000 the ring slips"""
import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")

@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] + where(n >= 32, X[m, n - 32], 0.0)", threads=128)
def add_previous(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    bm = tw.grid(tw.cdiv(M, 32))
    s = tw.shared(f32, (4, 32, 32), pad=1)
    for v in tw.unroll(4):
        tw.store(s[v], tw.zeros(f32, (32, 32)))
    off = 0
    for c in tw.range(tw.cdiv(N, 32)):
        if c == 1000:
            off = 3
        x = tw.load(X[bm * 32 : bm * 32 + 32, c * 32 : c * 32 + 32], fill=0.0)
        tw.sync()
        tw.store(s[(c + off) % 4], x)
        tw.sync()
        tw.store(Y[bm * 32, c * 32], x + tw.load(s[(c + off + 3) % 4]))

