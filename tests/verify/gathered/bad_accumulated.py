"""Sums so far are added again."""
import tilewright as tw
from tilewright import f32, i32

T, S, N = tw.sizes("T S N")


@tw.kernel(target="sm_80", computes="G[idx[t], n] += X[t, n]", threads=128)
def accumulated(X: tw.Tensor(f32, T, N), idx: tw.Tensor(i32, T), G: tw.Tensor(f32, S, N, zeroed=True)):
    bn = tw.grid(tw.cdiv(N, 128))
    x = tw.zeros(f32, (16, 128))
    for i in tw.range(tw.cdiv(T, 16)):
        place = tw.load(idx[i * 16 : i * 16 + 16], fill=-1)
        x = x + tw.load(X[i * 16 : i * 16 + 16, bn * 128 : bn * 128 + 128], fill=0.0)
        tw.atomic_add(G[place, bn * 128 : bn * 128 + 128], x)
