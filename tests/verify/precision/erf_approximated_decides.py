# expect: not proved: erf is approximated relative to 1
"""A comparison with an approximation."""
import tilewright as tw
from tilewright import bf16, f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[i] = where(erf(X[i]) > 0.5, X[i], 0)", threads=128)
def erf_approximated_decides(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(X[i : i + 512], fill=1.0)
    tw.store(Y[i : i + 512], tw.where(tw.erf(x, approx=True) > 0.5, x, 0.0))
