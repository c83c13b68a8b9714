"""What was there is not said, and not zeroed."""
import tilewright as tw
from tilewright import f32

T, N = tw.sizes("T N")


@tw.kernel(target="sm_80", computes="G[n] = sum(t, X[t, n])", threads=128)
def onto_unsaid(X: tw.Tensor(f32, T, N), G: tw.Tensor(f32, N)):
    bn, bt = tw.grid(tw.cdiv(N, 64), tw.cdiv(T, 64))
    x = tw.load(X[bt * 64 : bt * 64 + 64, bn * 64 : bn * 64 + 64], fill=0.0)
    tw.atomic_add(G[bn * 64], tw.sum(x, axis=0))
