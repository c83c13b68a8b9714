import tilewright as tw
from tilewright import f32
M, N = tw.sizes("M N")

@tw.kernel(target="sm_80", threads=128, computes="Y[m] = sum(n, X[m, n])")
def strided(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M), BN: tw.const = 512):
    m = tw.grid(M)
    total = tw.zeros(f32, (BN,))
    for n in tw.range(0, N, BN):
        total = total + tw.load(X[m, n : n + BN], fill=0.0)
    tw.store(Y[m], tw.sum(total, axis=0))
