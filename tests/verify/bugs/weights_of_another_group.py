# expect: TW1001
# hint: W[0, 0] is taken where W[1, 0] is expected
# rebuilds: grouped GEMM: every tile takes the weights of one expert
"""Every group is scaled by the factors of the first one."""
import tilewright as tw
from tilewright import f32, i32

P, E, N = tw.sizes("P E N")


@tw.kernel(target="sm_80", computes="Y[p, n] = X[p, n] * W[expert[p], n]", threads=128)
def scaled_groups(
    X: tw.Tensor(f32, P, N),
    W: tw.Tensor(f32, E, N),
    expert: tw.Tensor(i32, P),
    starts: tw.Tensor(i32, E + 1, offsets_of="expert"),
    Y: tw.Tensor(f32, P, N),
):
    bn, part, e = tw.grid(tw.cdiv(N, 32), 2, E)
    first = starts[e]
    end = starts[e + 1]
    w = tw.load(W[0, bn * 32 : bn * 32 + 32], fill=0.0)
    for m in tw.range(part, tw.cdiv(end - first, 16), 2):
        row = first + m * 16
        x = tw.load(X[row : row + 16, bn * 32 : bn * 32 + 32], fill=0.0)
        tw.store(Y[row, bn * 32], x * w[None, :], limit=(end, None))  # here
