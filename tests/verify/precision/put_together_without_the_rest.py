# expect: not proved: bf16 loses
"""Half of the rest is lost."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[i] = X[i]", threads=128)
def put_together_without_the_rest(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(X[i : i + 512], fill=0.0)
    h = x.to(bf16)
    l = (x - h.to(f32)).to(bf16)
    y = h.to(f32) + l.to(f32) * 0.5
    tw.store(Y[i : i + 512], y)
