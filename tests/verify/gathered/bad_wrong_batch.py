"""The places of the first batch."""
import tilewright as tw
from tilewright import f32, i32

T, S, N, B = tw.sizes("T S N B")


@tw.kernel(target="sm_80", computes="G[b, idx[b, t], n] += X[b, t, n]", threads=128)
def wrong_batch(X: tw.Tensor(f32, B, T, N), idx: tw.Tensor(i32, B, T), G: tw.Tensor(f32, B, S, N, zeroed=True)):
    bn, bt, b = tw.grid(tw.cdiv(N, 128), tw.cdiv(T, 16), B)
    place = tw.load(idx[0, bt * 16 : bt * 16 + 16], fill=-1)
    x = tw.load(X[b, bt * 16 : bt * 16 + 16, bn * 128 : bn * 128 + 128], fill=0.0)
    tw.atomic_add(G[b, place, bn * 128 : bn * 128 + 128], x)
