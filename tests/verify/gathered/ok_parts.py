"""Keys and values beside each other."""
import tilewright as tw
from tilewright import f32, i32

T, S, N = tw.sizes("T S N")


@tw.kernel(target="sm_80", computes="G[idx[t], 0, n] += K1[t, n]; G[idx[t], 1, n] += V1[t, n]", threads=128)
def parts(K1: tw.Tensor(f32, T, N), V1: tw.Tensor(f32, T, N), idx: tw.Tensor(i32, T), G: tw.Tensor(f32, S, 2, N, zeroed=True)):
    bn, bt = tw.grid(tw.cdiv(N, 128), tw.cdiv(T, 16))
    place = tw.load(idx[bt * 16 : bt * 16 + 16], fill=-1)
    k = tw.load(K1[bt * 16 : bt * 16 + 16, bn * 128 : bn * 128 + 128], fill=0.0)
    v = tw.load(V1[bt * 16 : bt * 16 + 16, bn * 128 : bn * 128 + 128], fill=0.0)
    tw.atomic_add(G[place, 0, bn * 128 : bn * 128 + 128], k)
    tw.atomic_add(G[place, 1, bn * 128 : bn * 128 + 128], v)
