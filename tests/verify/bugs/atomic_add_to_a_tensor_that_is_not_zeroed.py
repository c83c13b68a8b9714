# expect: TW1002
# hint: line 12: `S` must start at zero: declare it with zeroed=True
# rebuilds: split-K result that changes from call to call: the output buffer is not cleared
"""The launcher is not asked to zero the destination of the atomic adds."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[n] = sum(m, X[m, n])", threads=128)
def column_sum(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, N)):
    bn, bm = tw.grid(tw.cdiv(N, 32), tw.cdiv(M, 32))
    x = tw.load(X[bm * 32 : bm * 32 + 32, bn * 32 : bn * 32 + 32], fill=0.0)
    tw.atomic_add(S[bn * 32 : bn * 32 + 32], tw.sum(x, axis=0))  # here
