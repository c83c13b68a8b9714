# expect: not proved: 
"""Two roundings to bf16 with an addition between them."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[i] = bf16(X[i] * 3) ", threads=128)
def rounded_to_bf16_twice(X: tw.Tensor(f32, N), Y: tw.Tensor(bf16, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(X[i : i + 512], fill=0.0)
    y = ((x * 3.0).to(bf16).to(f32) + 0.0 * x).to(bf16)
    tw.store(Y[i : i + 512], y)
