"""Another mask than the one that is said."""
import tilewright as tw
from tilewright import f32, i32

T, S, N = tw.sizes("T S N")


@tw.kernel(target="sm_80", computes="G[v, n] = sum(t, where(idx[t] == v and M[t] > 0, X[t, n], 0.0))", threads=128)
def masked_by_data_wrong(X: tw.Tensor(f32, T, N), M: tw.Tensor(i32, T), idx: tw.Tensor(i32, T), G: tw.Tensor(f32, S, N, zeroed=True)):
    bn, bt = tw.grid(tw.cdiv(N, 128), tw.cdiv(T, 16))
    place = tw.load(idx[bt * 16 : bt * 16 + 16], fill=-1)
    m = tw.load(M[bt * 16 : bt * 16 + 16], fill=0)
    place = tw.where(m >= 0, place, -1)
    x = tw.load(X[bt * 16 : bt * 16 + 16, bn * 128 : bn * 128 + 128], fill=0.0)
    tw.atomic_add(G[place, bn * 128 : bn * 128 + 128], x)
