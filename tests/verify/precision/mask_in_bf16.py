# expect: not proved: in a comparison
"""Places are rounded before they are compared."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[i] = where(i < 4000, X[i], 0)", threads=128)
def mask_in_bf16(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(X[i : i + 512], fill=0.0)
    y = tw.where((tw.coord(x, 0) + i).to(f32).to(bf16).to(f32) < 4000.0, x, 0.0)
    tw.store(Y[i : i + 512], y)
