# expect: not proved: 
"""One output is stated in bf16, the other is made of it."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="P[i] = bf16(X[i] * 3); Y[i] = X[i] * 3 + 1", threads=128)
def second_output_from_a_rounded_one(X: tw.Tensor(f32, N), P: tw.Tensor(bf16, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    p = (tw.load(X[i : i + 512], fill=0.0) * 3.0).to(bf16)
    tw.store(P[i : i + 512], p)
    tw.store(Y[i : i + 512], p.to(f32) + 1.0)
