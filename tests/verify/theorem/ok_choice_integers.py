"""The larger of two integers."""
import tilewright as tw
from tilewright import i32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = maximum(X[n], 0)", threads=128)
def choice_integers(X: tw.Tensor(i32, N), Y: tw.Tensor(i32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=1)
    tw.store(Y[i], tw.where(x > 0, x, 0))
