"""The row of the next t."""
import tilewright as tw
from tilewright import f32, i32

T, S, N = tw.sizes("T S N")


@tw.kernel(target="sm_80", computes="cache[slot[t], n] = X[t, n]", threads=128)
def scatter_next_row(X: tw.Tensor(f32, T, N), slot: tw.Tensor(i32, T, range=(-1, S), distinct=True), cache: tw.Tensor(f32, S, N)):
    bn, bt = tw.grid(tw.cdiv(N, 128), tw.cdiv(T, 16))
    place = tw.load(slot[bt * 16 : bt * 16 + 16], fill=-1)
    x = tw.load(X[bt * 16 + 1 : bt * 16 + 17, bn * 128 : bn * 128 + 128], fill=0.0)
    tw.store(cache[place, bn * 128 : bn * 128 + 128], x)
