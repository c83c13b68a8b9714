# expect: not proved: 
"""sqrt of an f16, where its result alone is stated in bf16."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[i] = bf16(sqrt(X[i]))", threads=128)
def root_of_a_rounded_number(X: tw.Tensor(f32, N), Y: tw.Tensor(bf16, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(X[i : i + 512], fill=0.0)
    y = tw.sqrt(x.to(f16).to(f32)).to(bf16)
    tw.store(Y[i : i + 512], y)
