# expect: proved
"""Relative to its magnitude, which counts as 1, the sigmoid is as exact as bf16 asks for."""
import tilewright as tw
from tilewright import bf16, f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[i] = bf16(X[i] * sigmoid(X[i]))", threads=128)
def sigmoid_approximated_for_bf16(X: tw.Tensor(f32, N), Y: tw.Tensor(bf16, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(X[i : i + 512], fill=1.0)
    tw.store(Y[i : i + 512], (x * tw.sigmoid(x, approx=True)).to(bf16))
