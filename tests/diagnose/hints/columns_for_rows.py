# expect: TW1001 TW1002
# hint: instead of `Y[
"""The indices of the store are exchanged."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n]", threads=128)
def copy(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    bm, bn = tw.grid(tw.cdiv(M, 32), tw.cdiv(N, 32))
    x = tw.load(X[bm * 32 : bm * 32 + 32, bn * 32 : bn * 32 + 32], fill=0.0)
    tw.store(Y[bn * 32 : bn * 32 + 32, bm * 32 : bm * 32 + 32], x)  # here
