# expect: TW1001
# hint: line 13: the index: `block.y * 64` instead of `block.y * 32`
# rebuilds: split-K: partitions of K overlap, part of the sum counts twice
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[n] = sum(m, X[m, n])")
def column_sum(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, N, zeroed=True)):
    bn, bm = tw.grid(tw.cdiv(N, 64), tw.cdiv(M, 32))
    x = tw.load(X[bm * 32 : bm * 32 + 64, bn * 64 : bn * 64 + 64], fill=0.0)
    tw.atomic_add(S[bn * 64], tw.sum(x, axis=0))  # here
