# expect: not proved: erf is approximated relative to 1
"""Where 1 + erf(x) is near 0 its logarithm is anything."""
import tilewright as tw
from tilewright import bf16, f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[i] = log(1 + erf(X[i]))", threads=128)
def erf_approximated_in_a_logarithm(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(X[i : i + 512], fill=1.0)
    tw.store(Y[i : i + 512], tw.log(1.0 + tw.erf(x, approx=True)))
