# expect: not proved: sigmoid is approximated relative to 1
"""sigmoid(-20) is 2e-9, its approximation 0 or 2e-4."""
import tilewright as tw
from tilewright import bf16, f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[i] = bf16(1 / f32(bf16(sigmoid(X[i]))))", threads=128)
def sigmoid_approximated_in_a_denominator(X: tw.Tensor(f32, N), Y: tw.Tensor(bf16, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(X[i : i + 512], fill=1.0)
    tw.store(Y[i : i + 512], (1.0 / tw.sigmoid(x, approx=True)).to(bf16))
