# expect: TW2001 TW1001
# hint: two blocks store one element
# rebuilds: grouped GEMM by a table of tiles: the last tile of a group writes rows of the next
"""The last tile of a group is stored whole: the end of its group is ignored."""
import tilewright as tw
from tilewright import f32, i32

P, E, N, TILES = tw.sizes("P E N TILES")


@tw.kernel(target="sm_80", computes="Y[p, n] = X[p, n] * W[expert[p], n]", threads=128)
def scaled_tiles(
    X: tw.Tensor(f32, P, N),
    W: tw.Tensor(f32, E, N),
    expert: tw.Tensor(i32, P, range=E),
    first: tw.Tensor(i32, TILES),
    end: tw.Tensor(i32, TILES, tile_ends=("first", 16, "expert")),
    Y: tw.Tensor(f32, P, N),
):
    bn, t = tw.grid(tw.cdiv(N, 32), TILES)
    row = first[t]
    e = expert[row]
    w = tw.load(W[e, bn * 32 : bn * 32 + 32], fill=0.0)
    x = tw.load(X[row : row + 16, bn * 32 : bn * 32 + 32], fill=0.0)
    tw.store(Y[row, bn * 32], x * w[None, :])  # here
