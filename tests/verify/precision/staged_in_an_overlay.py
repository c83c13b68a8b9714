# expect: not proved: 
"""An intermediate value goes through an overlay of bf16."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[i] = X[i] * 3 + 1", threads=128)
def staged_in_an_overlay(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(X[i : i + 512], fill=0.0)
    s = tw.shared(f32, (512,))
    t = tw.overlay(s, bf16, (512,))
    tw.store(t, (x * 3.0).to(bf16))
    tw.sync()
    y = tw.load(t).to(f32) + 1.0
    tw.store(Y[i : i + 512], y)
