# expect: not proved: 
"""Products of bf16 numbers in bf16, added in f32."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="S[m] = sum(n, f32(X[m, n]) * f32(W[n]))", threads=128)
def products_in_bf16(X: tw.Tensor(bf16, M, N), W: tw.Tensor(bf16, N), S: tw.Tensor(f32, M)):
    tw.assume(N <= 1024)
    m = tw.grid(M)
    p = tw.load(X[m, 0:1024], fill=0.0) * tw.load(W[0:1024], fill=0.0)
    tw.store(S[m], tw.sum(p.to(f32), axis=0))
