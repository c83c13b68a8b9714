# expect: not proved: 
"""A float becomes an integer and a float again."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[i] = X[i]", threads=128)
def through_an_integer(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(X[i : i + 512], fill=0.0)
    y = x.to(i32).to(f32)
    tw.store(Y[i : i + 512], y)
