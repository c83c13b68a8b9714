"""A permutation writes every row; that it has an inverse is promise enough."""
import tilewright as tw
from tilewright import f32, i32

T, N = tw.sizes("T N")


@tw.kernel(target="sm_80", computes="Y[to[t], n] = X[t, n]", threads=128)
def scatter_permutation(X: tw.Tensor(f32, T, N), to: tw.Tensor(i32, T), source: tw.Tensor(i32, T, inverse_of="to"), Y: tw.Tensor(f32, T, N)):
    bn, bt = tw.grid(tw.cdiv(N, 128), tw.cdiv(T, 16))
    place = tw.load(to[bt * 16 : bt * 16 + 16], fill=-1)
    x = tw.load(X[bt * 16 : bt * 16 + 16, bn * 128 : bn * 128 + 128], fill=0.0)
    tw.store(Y[place, bn * 128 : bn * 128 + 128], x)
