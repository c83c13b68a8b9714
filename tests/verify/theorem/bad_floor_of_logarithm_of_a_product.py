"""The logarithm of a product of two elements, each near 2^127, times 10 goes beyond 2048; of elements that are multiplied as real numbers in computes nothing is known."""
import tilewright as tw
from tilewright import bf16, f16, f32, i32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = where(floor(10 * log2(abs(X[n]) * abs(Z[n]))) > 2049.0, 1.0, 0.0)", threads=64)
def over(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    n = tw.grid(tw.cdiv(N, 64)) * 64
    x = tw.load(X[n : n + 64], fill=1.0)
    z = tw.load(Z[n : n + 64], fill=1.0)
    f = tw.floor(10.0 * (tw.log2(tw.abs(x)) + tw.log2(tw.abs(z))))
    tw.store(Y[n : n + 64], tw.where(f.to(f16).to(f32) > 2049.0, 1.0, 0.0))
