# expect: TW2001
# hint: two blocks store one element
# rebuilds: split-K epilogue stores instead of adding
"""Every block stores its part of the sum over the others' parts."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[n] = sum(m, X[m, n])", threads=128)
def column_sum(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, N, zeroed=True)):
    bn, bm = tw.grid(tw.cdiv(N, 32), tw.cdiv(M, 32))
    x = tw.load(X[bm * 32 : bm * 32 + 32, bn * 32 : bn * 32 + 32], fill=0.0)
    tw.store(S[bn * 32 : bn * 32 + 32], tw.sum(x, axis=0))  # here
