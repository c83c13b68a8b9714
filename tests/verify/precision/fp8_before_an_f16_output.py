# expect: not proved: 
"""A value goes through fp8 before it is rounded to f16."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[i] = f16(X[i] * 2)", threads=128)
def fp8_before_an_f16_output(X: tw.Tensor(f32, N), Y: tw.Tensor(f16, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(X[i : i + 512], fill=0.0)
    y = (x.to(e4m3).to(f32) * 2.0).to(f16)
    tw.store(Y[i : i + 512], y)
