# expect: not proved: bf16 loses
"""Each element is rounded before it is added."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="S[m] = sum(n, f32(X[m, n])) / 1024", threads=128)
def every_term_rounded(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    m = tw.grid(M)
    total = tw.zeros(f32, (256,))
    for c in tw.range(tw.cdiv(N, 256)):
        x = tw.load(X[m, c * 256 : c * 256 + 256], fill=0.0)
        total = total + x.to(bf16).to(f32)
    tw.store(S[m], tw.sum(total, axis=0) / 1024.0)
