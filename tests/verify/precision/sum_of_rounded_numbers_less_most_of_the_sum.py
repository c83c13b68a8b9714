# expect: not proved: 
"""A thousandth of a sum is left of the sum of rounded numbers."""
import tilewright as tw
from tilewright import bf16, f16, f32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[m] = f32(bf16(Z[m] + 0.001 * sum(n, X[m, n])))", threads=128)
def sum_of_rounded_numbers_less_most_of_the_sum(X: tw.Tensor(f32, M, N), Z: tw.Tensor(f32, M), Y: tw.Tensor(f32, M)):
    tw.assume(N <= 1024)
    m = tw.grid(M)
    x = tw.load(X[m, 0:1024], fill=0.0)
    z = tw.load(Z[m : m + 1], fill=0.0)
    h = x.to(bf16).to(f32)
    tw.store(Y[m : m + 1], z + (tw.sum(h, axis=0) - 0.999 * tw.sum(x, axis=0)))
