# expect: proved
"""Before a rounding to bf16 they are enough."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[i] = bf16(tanh(f32(X[i])))", threads=128)
def tanh_approximated_for_bf16(X: tw.Tensor(bf16, N), Y: tw.Tensor(bf16, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(X[i : i + 512], fill=0.0)
    y = tw.tanh(x.to(f32), approx=True).to(bf16)
    tw.store(Y[i : i + 512], y)
