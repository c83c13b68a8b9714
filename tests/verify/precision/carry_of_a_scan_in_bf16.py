# expect: not proved: 
"""The sum of all chunks before is kept in bf16."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[m, n] = sum(j in 0:n + 1, X[m, j])", threads=128)
def carry_of_a_scan_in_bf16(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    m = tw.grid(M)
    carry = tw.zeros(bf16, ())
    for c in tw.range(tw.cdiv(N, 256)):
        x = tw.load(X[m, c * 256 : c * 256 + 256], fill=0.0)
        y = tw.cumsum(x, axis=0) + carry.to(f32)
        tw.store(Y[m, c * 256 : c * 256 + 256], y)
        carry = (carry.to(f32) + tw.sum(x, axis=0)).to(bf16)
