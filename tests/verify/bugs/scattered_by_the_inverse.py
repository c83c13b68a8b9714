# expect: TW1001 TW2001
# hint: X[1, 0] is taken where X[2, 0] is expected
# rebuilds: unpermute: a permutation where its inverse belongs
"""Rows are scattered to where they came from instead of where they go."""
import tilewright as tw
from tilewright import f32, i32

P, N = tw.sizes("P N")


@tw.kernel(target="sm_80", computes="Y[i, n] = X[source[i], n]", threads=128)
def scattered(X: tw.Tensor(f32, P, N), to: tw.Tensor(i32, P), source: tw.Tensor(i32, P, inverse_of="to"), Y: tw.Tensor(f32, P, N)):
    bn, bp = tw.grid(tw.cdiv(N, 32), tw.cdiv(P, 16))
    place = tw.load(source[bp * 16 : bp * 16 + 16], fill=-1)
    x = tw.load(X[bp * 16 : bp * 16 + 16, bn * 32 : bn * 32 + 32], fill=0.0)
    tw.store(Y[place, bn * 32 : bn * 32 + 32], x)  # here
