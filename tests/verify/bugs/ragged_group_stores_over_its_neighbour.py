# expect: TW2001 TW1001
# hint: two blocks store one element
# rebuilds: grouped GEMM: last tile of a group writes rows of the next
"""Tiles of a group end at a multiple of the tile, over the first rows of the next group: the limit is missing."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] * 2", threads=128)
def double_groups(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    bn, half = tw.grid(tw.cdiv(N, 32), 2)
    first = half * (M // 2)
    end = M if half == 1 else M // 2
    for t in tw.range(tw.cdiv(end - first, 32)):
        row = first + t * 32
        x = tw.load(X[row : row + 32, bn * 32 : bn * 32 + 32], fill=0.0)
        tw.store(Y[row, bn * 32], x * 2.0)  # here
