"""Tiles of 16 rows, 8 apart: two blocks write each row."""
import tilewright as tw
from tilewright import f32, i32

T, S, N = tw.sizes("T S N")


@tw.kernel(target="sm_80", computes="cache[slot[t], n] = X[t, n]", threads=128)
def scatter_overlapping_tiles(X: tw.Tensor(f32, T, N), slot: tw.Tensor(i32, T, range=(-1, S), distinct=True), cache: tw.Tensor(f32, S, N)):
    bn, bt = tw.grid(tw.cdiv(N, 128), tw.cdiv(T, 8))
    place = tw.load(slot[bt * 8 : bt * 8 + 16], fill=-1)
    x = tw.load(X[bt * 8 : bt * 8 + 16, bn * 128 : bn * 128 + 128], fill=0.0)
    tw.store(cache[place, bn * 128 : bn * 128 + 128], x)
