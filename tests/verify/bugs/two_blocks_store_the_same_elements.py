# expect: TW2001
# hint: two blocks store one element
# rebuilds: tile stride smaller than the tile: blocks overlap
"""Blocks advance by half a tile: every element but the first is written twice."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] * 2", threads=128)
def double(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    bn, m = tw.grid(tw.cdiv(N, 64), M)
    x = tw.load(X[m, bn * 64 : bn * 64 + 128], fill=0.0)
    tw.store(Y[m, bn * 64 : bn * 64 + 128], x * 2.0)  # here
