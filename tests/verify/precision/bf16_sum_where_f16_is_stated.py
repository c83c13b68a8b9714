# expect: not proved: bf16
"""A coarser type than the stated one."""
import tilewright as tw
from tilewright import bf16, f16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[n] = sum(m, f16(X[m, n]))", threads=128)
def bf16_sum_where_f16_is_stated(X: tw.Tensor(f16, M, N), S: tw.Tensor(f16, N)):
    n = tw.grid(tw.cdiv(N, 256)) * 256
    total = tw.zeros(bf16, (256,))
    for m in tw.range(M):
        x = tw.load(X[m, n : n + 256], fill=0.0)
        total = total + x.to(f32).to(bf16)
    tw.store(S[n : n + 256], total.to(f32).to(f16))
