"""Keys and values swapped."""
import tilewright as tw
from tilewright import f32, i32

T, S, N = tw.sizes("T S N")


@tw.kernel(target="sm_80", computes="C[slot[t], 0, n] = K[t, n]; C[slot[t], 1, n] = V[t, n]", threads=128)
def scatter_keys_and_values_swapped(K: tw.Tensor(f32, T, N), V: tw.Tensor(f32, T, N), slot: tw.Tensor(i32, T, range=(-1, S), distinct=True), C: tw.Tensor(f32, S, 2, N)):
    bn, bt = tw.grid(tw.cdiv(N, 128), tw.cdiv(T, 16))
    place = tw.load(slot[bt * 16 : bt * 16 + 16], fill=-1)
    x = tw.load(V[bt * 16 : bt * 16 + 16, bn * 128 : bn * 128 + 128], fill=0.0)
    tw.store(C[place, 0, bn * 128 : bn * 128 + 128], x)
    x = tw.load(K[bt * 16 : bt * 16 + 16, bn * 128 : bn * 128 + 128], fill=0.0)
    tw.store(C[place, 1, bn * 128 : bn * 128 + 128], x)
