"""All rows to the place of the first."""
import tilewright as tw
from tilewright import f32, i32

T, S, N = tw.sizes("T S N")


@tw.kernel(target="sm_80", computes="G[idx[t], n] += X[t, n]", threads=128)
def row_and_place(X: tw.Tensor(f32, T, N), idx: tw.Tensor(i32, T, range=S), G: tw.Tensor(f32, S, N, zeroed=True)):
    bn, t = tw.grid(tw.cdiv(N, 128), T)
    tw.atomic_add(G[idx[0], bn * 128 : bn * 128 + 128], tw.load(X[t, bn * 128 : bn * 128 + 128], fill=0.0))
