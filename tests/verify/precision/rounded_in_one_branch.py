# expect: not proved: 
"""Only one way through the branch rounds."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[i] = X[i] * 3", threads=128)
def rounded_in_one_branch(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(X[i : i + 512], fill=0.0)
    y = x * 3.0
    if i > 1000:
        y = (x * 3.0).to(bf16).to(f32)
    tw.store(Y[i : i + 512], y)
