"""Only where another tensor says so."""
import tilewright as tw
from tilewright import f32, i32

T, S, N = tw.sizes("T S N")


@tw.kernel(target="sm_80", computes="G[idx[t], n] += X[t, n]", threads=128)
def if_another(X: tw.Tensor(f32, T, N), idx: tw.Tensor(i32, T, range=(-1, S)), o: tw.Tensor(i32, T), G: tw.Tensor(f32, S, N, zeroed=True)):
    bn, t = tw.grid(tw.cdiv(N, 128), T)
    v = idx[t]
    if v >= 0:
        if o[t] == 0:
            tw.atomic_add(G[v, bn * 128 : bn * 128 + 128], tw.load(X[t, bn * 128 : bn * 128 + 128], fill=0.0))
