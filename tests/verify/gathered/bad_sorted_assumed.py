"""A tile is added up as if its places were equal."""
import tilewright as tw
from tilewright import f32, i32

T, S, N = tw.sizes("T S N")


@tw.kernel(target="sm_80", computes="G[idx[t], n] += X[t, n]", threads=128)
def sorted_assumed(X: tw.Tensor(f32, T, N), idx: tw.Tensor(i32, T, range=S, sorted=True), G: tw.Tensor(f32, S, N, zeroed=True)):
    bn, bt = tw.grid(tw.cdiv(N, 128), tw.cdiv(T, 16))
    v = idx[bt * 16]
    x = tw.load(X[bt * 16 : bt * 16 + 16, bn * 128 : bn * 128 + 128], fill=0.0)
    tw.atomic_add(G[v, bn * 128 : bn * 128 + 128], tw.sum(x, axis=0))
