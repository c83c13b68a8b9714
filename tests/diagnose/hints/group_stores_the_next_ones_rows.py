# expect: TW2001
# says: of which `computes` is no sum: a tile reaches beyond
"""The last tile of a group has rows of the next one."""
import tilewright as tw
from tilewright import f32, i32

P, E, N = tw.sizes("P E N")


@tw.kernel(target="sm_80", computes="Y[p, n] = X[p, n] * W[expert[p], n]", threads=128)
def scaled(X: tw.Tensor(f32, P, N), W: tw.Tensor(f32, E, N), expert: tw.Tensor(i32, P), starts: tw.Tensor(i32, E + 1, offsets_of="expert"), Y: tw.Tensor(f32, P, N)):
    bn, e = tw.grid(tw.cdiv(N, 32), E)
    w = tw.load(W[e, bn * 32 : bn * 32 + 32], fill=0.0)
    for m in tw.range(tw.cdiv(starts[e + 1] - starts[e], 16)):
        row = starts[e] + m * 16
        tw.store(Y[row, bn * 32], tw.load(X[row : row + 16, bn * 32 : bn * 32 + 32], fill=0.0) * w[None, :])  # here
