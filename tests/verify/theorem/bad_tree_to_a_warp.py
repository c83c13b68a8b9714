"""The second step adds the first quarter again."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[m] = sum(n, X[m, n] * X[m, n])", threads=128)
def k(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    m = tw.grid(M)
    acc = tw.zeros(f32, (128,))
    for c in tw.range(tw.cdiv(N, 128)):
        x = tw.load(X[m, c * 128 : c * 128 + 128], fill=0.0)
        acc += x * x
    s = tw.shared(f32, (128,))
    tw.store(s, acc)
    tw.sync()
    a = tw.load(s[0:64]) + tw.load(s[64:128])
    tw.sync()
    tw.store(s[0:64], a)
    tw.sync()
    tw.store(S[m], tw.sum(tw.load(s[0:32]) + tw.load(s[0:32]), axis=0))
