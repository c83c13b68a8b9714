"""-1 names no row: the fill is what computes says there."""
import tilewright as tw
from tilewright import f32, i32

N, P = tw.sizes("N P")


@tw.kernel(target="sm_80", computes="Y[p] = where(g[p] >= 0, X[g[p]], 1)", threads=128)
def choice_gathered_or_fill(X: tw.Tensor(f32, N), g: tw.Tensor(i32, P, range=(-1, N)), Y: tw.Tensor(f32, P)):
    i = tw.grid(tw.cdiv(P, 128)) * 128
    r = tw.load(g[i : i + 128], fill=0)
    tw.store(Y[i], tw.load(X[r], fill=1.0))
