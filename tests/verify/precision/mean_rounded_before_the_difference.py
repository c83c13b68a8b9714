# expect: not proved: 
"""The mean is rounded to bf16, and so is the result."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[m, n] = bf16(f32(X[m, n]) - mean(j, f32(X[m, j])))", threads=128)
def mean_rounded_before_the_difference(X: tw.Tensor(bf16, M, N), Y: tw.Tensor(bf16, M, N)):
    tw.assume(N <= 1024)
    m = tw.grid(M)
    x = tw.load(X[m, 0:1024], fill=0.0).to(f32)
    mean = (tw.sum(x, axis=0) / N).to(bf16).to(f32)
    tw.store(Y[m, 0:1024], (x - mean).to(bf16))
