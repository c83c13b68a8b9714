# expect: TW1001 TW1002
# hint: zeroed=True
"""The destination of atomic adds is not cleared."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[n] = sum(m, X[m, n])", threads=128)
def column_sum(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, N)):  # here
    bm, bn = tw.grid(tw.cdiv(M, 32), tw.cdiv(N, 64))
    x = tw.load(X[bm * 32 : bm * 32 + 32, bn * 64 : bn * 64 + 64], fill=0.0)
    tw.atomic_add(S[bn * 64], tw.sum(x, axis=0))
