# expect: not proved: 
"""The low part is of another type, and one product is missing."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[i] = X[i] * X[i]", threads=128)
def split_into_two_types(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(X[i : i + 512], fill=0.0)
    h = x.to(tf32)
    l = (x - h.to(f32)).to(bf16)
    y = h.to(f32) * h.to(f32) + l.to(f32) * h.to(f32)
    tw.store(Y[i : i + 512], y)
