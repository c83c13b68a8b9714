# expect: TW1001
# hint: line 14: the condition: `0 <= block.y` instead of `0 < block.y`
# rebuilds: split-K: one of the partial sums is dropped by a guard
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[n] = sum(m, X[m, n])")
def column_sum(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, N, zeroed=True)):
    bn, bm = tw.grid(tw.cdiv(N, 64), tw.cdiv(M, 64))
    x = tw.load(X[bm * 64 : bm * 64 + 64, bn * 64 : bn * 64 + 64], fill=0.0)
    if bm > 0:
        tw.atomic_add(S[bn * 64], tw.sum(x, axis=0))  # here
