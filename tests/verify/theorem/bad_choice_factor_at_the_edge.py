"""Equal numbers are on the other side."""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = where(X[n] > 0.5, X[n], 0)", threads=128)
def choice_factor_at_the_edge(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=1)
    tw.store(Y[i], x * tw.where(x >= 0.5, 1.0, 0.0))
