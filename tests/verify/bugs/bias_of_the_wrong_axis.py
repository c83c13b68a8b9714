# expect: TW1001 TW2006 TW1003
# hint: line 15: the index: `block.y * 32` instead of `block.x * 32`
# rebuilds: epilogue broadcast along the wrong axis: right for one block only
"""A bias along the columns is read with the block's row offset."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] + B[n]", threads=128)
def add_bias(X: tw.Tensor(f32, M, N), B: tw.Tensor(f32, N), Y: tw.Tensor(f32, M, N)):
    bm, bn = tw.grid(tw.cdiv(M, 32), tw.cdiv(N, 32))
    x = tw.load(X[bm * 32 : bm * 32 + 32, bn * 32 : bn * 32 + 32], fill=0.0)
    b = tw.load(B[bm * 32 : bm * 32 + 32], fill=0.0)
    tw.store(Y[bm * 32, bn * 32], x + b[None, :])  # here
