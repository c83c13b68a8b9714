# expect: proved
"""The same, stated."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[m, n] = bf16(exp(f32(bf16(X[m, n]))) / sum(j, exp(f32(bf16(X[m, j])))))", threads=128)
def scores_stated_in_bf16(X: tw.Tensor(f32, M, N), Y: tw.Tensor(bf16, M, N)):
    tw.assume(N <= 1024)
    m = tw.grid(M)
    x = tw.load(X[m, 0:1024], fill=float("-inf"))
    z = x.to(bf16).to(f32)
    e = tw.exp(z - tw.max(z, axis=0))
    tw.store(Y[m, 0:1024], (e / tw.sum(e, axis=0)).to(bf16))
