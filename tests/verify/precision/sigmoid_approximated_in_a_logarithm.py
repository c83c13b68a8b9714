# expect: not proved: sigmoid is approximated relative to 1
"""A rounding to bf16 is stated there, which leaves 8 bits of 2e-9; the approximation leaves none."""
import tilewright as tw
from tilewright import bf16, f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[i] = log(f32(bf16(sigmoid(X[i]))))", threads=128)
def sigmoid_approximated_in_a_logarithm(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(X[i : i + 512], fill=1.0)
    tw.store(Y[i : i + 512], tw.log(tw.sigmoid(x, approx=True).to(bf16).to(f32)))
