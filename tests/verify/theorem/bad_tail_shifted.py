"""It begins one element late."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m] = sum(n, X[m, n])", threads=128)
def tail_shifted(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    m = tw.grid(M)
    s = tw.zeros(f32, (256,))
    for c in tw.range(N // 256):
        s += tw.load(X[m, c * 256 : c * 256 + 256], fill=0.0)
    if N % 256 != 0:
        s += tw.load(X[m, N // 256 * 256 + 1 : N // 256 * 256 + 1 + 256], fill=0.0)
    tw.store(Y[m], tw.sum(s, axis=0))
