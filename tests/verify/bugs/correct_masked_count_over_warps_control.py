# expect: proved
import tilewright as tw
from tilewright import f32
M, N = tw.sizes("M N")
@tw.kernel(target="sm_80", threads=128, computes="""
let mu[m] = mean(n, X[m, n])
S[m] = mean(n, (X[m, n] - mu[m]) ** 2)""")
def variance(X: tw.Tensor(f32, M, N), S: tw.Tensor(f32, M)):
    tw.assume(N <= 1024)
    tw.assume(N % 4 == 0)
    m = tw.grid(M)
    x = tw.load(X[m, 0:1024], fill=0.0)
    mu = tw.sum(x, axis=0) / N
    centred = tw.where(tw.coord(x, 0) < N, x - mu, 0.0)
    tw.store(S[m], tw.sum(centred * centred, axis=0) / N)
