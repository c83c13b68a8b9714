# expect: not proved: erf is approximated relative to 1
"""erf of 1e-6 is off by a fifth: the approximation is 1 less a number."""
import tilewright as tw
from tilewright import bf16, f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[i] = X[i] / erf(X[i])", threads=128)
def erf_approximated_in_a_denominator(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(X[i : i + 512], fill=1.0)
    tw.store(Y[i : i + 512], x / tw.erf(x, approx=True))
