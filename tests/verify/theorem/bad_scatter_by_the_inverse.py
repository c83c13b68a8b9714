"""The inverse permutation names the places."""
import tilewright as tw
from tilewright import f32, i32

T, N = tw.sizes("T N")


@tw.kernel(target="sm_80", computes="Y[to[t], n] = X[t, n]", threads=128)
def scatter_by_the_inverse(X: tw.Tensor(f32, T, N), to: tw.Tensor(i32, T), source: tw.Tensor(i32, T, inverse_of="to"), Y: tw.Tensor(f32, T, N)):
    bn, bt = tw.grid(tw.cdiv(N, 128), tw.cdiv(T, 16))
    place = tw.load(source[bt * 16 : bt * 16 + 16], fill=-1)
    x = tw.load(X[bt * 16 : bt * 16 + 16, bn * 128 : bn * 128 + 128], fill=0.0)
    tw.store(Y[place, bn * 128 : bn * 128 + 128], x)
