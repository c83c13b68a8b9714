"""Additions in bf16, which round each time."""
import tilewright as tw
from tilewright import bf16, f32, i32

T, S, N = tw.sizes("T S N")


@tw.kernel(target="sm_80", computes="G[v, n] = bf16(sum(t, where(idx[t] == v, f32(X[t, n]), 0.0)))", threads=128)
def bf16_sum(X: tw.Tensor(bf16, T, N), idx: tw.Tensor(i32, T), G: tw.Tensor(bf16, S, N, zeroed=True)):
    bn, bt = tw.grid(tw.cdiv(N, 128), tw.cdiv(T, 16))
    place = tw.load(idx[bt * 16 : bt * 16 + 16], fill=-1)
    x = tw.load(X[bt * 16 : bt * 16 + 16, bn * 128 : bn * 128 + 128], fill=0.0)
    tw.atomic_add(G[place, bn * 128 : bn * 128 + 128], x)
