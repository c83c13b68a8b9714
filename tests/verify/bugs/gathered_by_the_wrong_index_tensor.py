# expect: TW1001
# hint: X[0, 0] is taken where X[1, 0] is expected
# rebuilds: permute: rows gathered by the index of another step
"""Rows are gathered by another index tensor than `computes` says."""
import tilewright as tw
from tilewright import f32, i32

T, P, N = tw.sizes("T P N")


@tw.kernel(target="sm_80", computes="Y[p, n] = X[rows[p], n]", threads=128)
def permuted(X: tw.Tensor(f32, T, N), rows: tw.Tensor(i32, P, range=T), other: tw.Tensor(i32, P, range=T), Y: tw.Tensor(f32, P, N)):
    bn, bp = tw.grid(tw.cdiv(N, 32), tw.cdiv(P, 16))
    source = tw.load(other[bp * 16 : bp * 16 + 16], fill=0)
    x = tw.load(X[source, bn * 32 : bn * 32 + 32], fill=0.0)
    tw.store(Y[bp * 16, bn * 32], x)  # here
