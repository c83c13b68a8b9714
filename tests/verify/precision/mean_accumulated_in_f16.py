# expect: not proved: f16
"""Running sums in f16."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="S[m] = sum(n, f32(X[m, n])) / 1024", threads=128)
def mean_accumulated_in_f16(X: tw.Tensor(f16, M, N), S: tw.Tensor(f32, M)):
    m = tw.grid(M)
    total = tw.zeros(f16, (256,))
    for c in tw.range(tw.cdiv(N, 256)):
        x = tw.load(X[m, c * 256 : c * 256 + 256], fill=0.0)
        total = total + x
    tw.store(S[m], tw.sum(total.to(f32), axis=0) / 1024.0)
