"""The rows of the next batch."""
import tilewright as tw
from tilewright import f32, i32

B, T, S, N = tw.sizes("B T S N")


@tw.kernel(target="sm_80", computes="cache[b, slot[b, t], n] = X[b, t, n]", threads=128)
def scatter_row_of_another_batch(X: tw.Tensor(f32, B, T, N), slot: tw.Tensor(i32, B, T, range=S, distinct=True), cache: tw.Tensor(f32, B, S, N)):
    bn, bt, b = tw.grid(tw.cdiv(N, 128), tw.cdiv(T, 16), B)
    place = tw.load(slot[b, bt * 16 : bt * 16 + 16], fill=-1)
    x = tw.load(X[(b + 1) % B, bt * 16 : bt * 16 + 16, bn * 128 : bn * 128 + 128], fill=0.0)
    tw.store(cache[b, place, bn * 128 : bn * 128 + 128], x)
