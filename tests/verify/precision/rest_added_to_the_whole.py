# expect: not proved: 
"""What rounding left is added to what was never rounded."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[i] = X[i]", threads=128)
def rest_added_to_the_whole(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(X[i : i + 512], fill=0.0)
    h = x.to(bf16)
    r = x - h.to(f32)
    y = x + r
    tw.store(Y[i : i + 512], y)
