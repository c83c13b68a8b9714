# expect: TW1001 TW1002
# hint: line 15: `Y[block.y * 32, block.x * 32]` instead of `Y[block.x * 32, block.y * 32]`
# rebuilds: output indices exchanged: right for square sizes of one tile
"""The tile is stored at the place of its mirror image."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] * 2", threads=128)
def double(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    bn, bm = tw.grid(tw.cdiv(N, 32), tw.cdiv(M, 32))
    x = tw.load(X[bm * 32 : bm * 32 + 32, bn * 32 : bn * 32 + 32], fill=0.0)
    tw.store(Y[bn * 32, bm * 32], x * 2.0)  # here
