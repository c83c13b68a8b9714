# expect: not proved: 
"""Scaled by 2048, scaled back by 1024."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[i] = X[i] * X[i]", threads=128)
def low_part_scaled_back_too_little(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(X[i : i + 512], fill=0.0)
    h = x.to(f16)
    l = ((x - h.to(f32)) * 2048.0).to(f16)
    a = h.to(f32) * h.to(f32)
    b = h.to(f32) * l.to(f32) + l.to(f32) * h.to(f32)
    y = a + b * 0.0009765625
    tw.store(Y[i : i + 512], y)
