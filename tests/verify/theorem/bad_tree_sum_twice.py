"""A step of the tree is taken twice: some elements count twice."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[m] = sum(n, X[m, n])", threads=128)
def k(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    m = tw.grid(M)
    acc = tw.zeros(f32, (128,))
    for c in tw.range(tw.cdiv(N, 128)):
        acc += tw.load(X[m, c * 128 : c * 128 + 128], fill=0.0)
    s = tw.shared(f32, (128,))
    tw.store(s, acc)
    tw.sync()
    for half in (64, 32, 32, 16, 8, 4, 2, 1):
        x = tw.load(s[0:half]) + tw.load(s[half : 2 * half])
        tw.sync()
        tw.store(s[0:half], x)
        tw.sync()
    tw.store(S[m], tw.load(s[0]))
