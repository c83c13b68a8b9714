"""The comparison is one of rounded numbers."""
import tilewright as tw
from tilewright import bf16, f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = maximum(X[n], 1)", threads=128)
def choice_rounded(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=1)
    tw.store(Y[i], tw.where(x.to(bf16).to(f32) > 1.0, x, 1.0))
