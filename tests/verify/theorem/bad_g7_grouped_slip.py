"""BUG: from the 1024th tile of a group on"""
import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")

R, P, E, D = tw.sizes("R P E D")

@tw.kernel(target="sm_80", computes="Y[p, n] = X[p, n] * W[expert[p], n]")
def grouped(X: tw.Tensor(f32, P, N), W: tw.Tensor(f32, E, N), expert: tw.Tensor(i32, P), starts: tw.Tensor(i32, E + 1, offsets_of="expert"), Y: tw.Tensor(f32, P, N)):
    bn, e = tw.grid(tw.cdiv(N, 32), E)
    s = tw.shared(f32, (2, 16, 32), pad=1)
    end = starts[e + 1]
    w = tw.load(W[e, bn * 32 : bn * 32 + 32], fill=0.0)
    for m in tw.range(tw.cdiv(end - starts[e], 16)):
        row = starts[e] + m * 16
        off = 0
        if m >= 1024:
            off = 1
        tw.store(s[(m + off) % 2], tw.load(X[row : row + 16, bn * 32 : bn * 32 + 32], fill=0.0))
        tw.sync()
        tw.store(Y[row, bn * 32], tw.load(s[(m + off) % 2], layout=tw.rows()) * w[None, :], limit=(end, None))
