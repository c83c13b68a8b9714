# expect: TW1001 TW1002
# hint: the grid along axis 0
"""Blocks for whole tiles only."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] * 2.0", threads=128)
def twice(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):  # here
    bm, bn = tw.grid(M // 16, tw.cdiv(N, 64))
    x = tw.load(X[bm * 16 : bm * 16 + 16, bn * 64 : bn * 64 + 64], fill=0.0)
    tw.store(Y[bm * 16 : bm * 16 + 16, bn * 64 : bn * 64 + 64], x * 2.0)
