# expect: not proved: tanh loses
"""tanh.approx has 11 bits."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[i] = tanh(X[i])", threads=128)
def tanh_approximated_for_f32(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(X[i : i + 512], fill=0.0)
    y = tw.tanh(x, approx=True)
    tw.store(Y[i : i + 512], y)
