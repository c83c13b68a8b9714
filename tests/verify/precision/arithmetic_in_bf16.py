# expect: not proved: bf16 loses
"""Two roundings to bf16 where one is stated."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[i] = bf16(f32(X[i]) * 3 + 1)", threads=128)
def arithmetic_in_bf16(X: tw.Tensor(bf16, N), Y: tw.Tensor(bf16, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(X[i : i + 512], fill=0.0)
    y = x * 3.0 + 1.0
    tw.store(Y[i : i + 512], y)
