"""Less, or less or equal."""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = where(X[n] < Z[n], 1, 0)", threads=128)
def choice_strict(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=1)
    z = tw.load(Z[i : i + 128], fill=1)
    tw.store(Y[i], tw.where(x <= z, 1.0, 0.0))
