"""As its twin: the scalar is promised to be positive."""
import tilewright as tw
from tilewright import f32, i32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = where(n % every == 0, X[n], 0)", threads=128)
def k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N), every: tw.scalar(i32, positive=True)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i], tw.where((tw.arange(128) + i) % every == 0, x, 0.0))
