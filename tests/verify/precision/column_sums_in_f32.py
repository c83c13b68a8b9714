# expect: proved
"""Rounded once."""
import tilewright as tw
from tilewright import bf16, f16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[n] = bf16(sum(m, f32(X[m, n])))", threads=128)
def column_sums_in_f32(X: tw.Tensor(bf16, M, N), S: tw.Tensor(bf16, N)):
    n = tw.grid(tw.cdiv(N, 256)) * 256
    total = tw.zeros(f32, (256,))
    for m in tw.range(M):
        x = tw.load(X[m, n : n + 256], fill=0.0)
        total = total + x.to(f32)
    tw.store(S[n : n + 256], total.to(bf16))
