# expect: not proved: in a comparison
"""A comparison of rounded numbers."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[i] = where(X[i] < 1, X[i], 0)", threads=128)
def threshold_in_bf16(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(X[i : i + 512], fill=0.0)
    y = tw.where(x.to(bf16).to(f32) < 1.0, x, 0.0)
    tw.store(Y[i : i + 512], y)
