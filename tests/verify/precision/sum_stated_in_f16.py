# expect: proved
"""Running sums in f16, stated."""
import tilewright as tw
from tilewright import bf16, f16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[n] = sum(m, f16(X[m, n]))", threads=128)
def sum_stated_in_f16(X: tw.Tensor(f16, M, N), S: tw.Tensor(f16, N)):
    n = tw.grid(tw.cdiv(N, 256)) * 256
    total = tw.zeros(f16, (256,))
    for m in tw.range(M):
        x = tw.load(X[m, n : n + 256], fill=0.0)
        total = total + x
    tw.store(S[n : n + 256], total)
