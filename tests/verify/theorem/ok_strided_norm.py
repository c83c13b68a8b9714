import tilewright as tw
from tilewright import f32
M, N = tw.sizes("M N")

@tw.kernel(target="sm_80", threads=128, computes="""let mean[m] = sum(n, X[m, n]) / N
let var[m] = sum(n, (X[m, n] - mean[m]) * (X[m, n] - mean[m])) / N
Y[m, n] = (X[m, n] - mean[m]) * rsqrt(var[m] + 1e-5)""")
def norm(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N), BN: tw.const = 512):
    m = tw.grid(M)
    total = tw.zeros(f32, (BN,))
    for n in tw.range(0, N, BN):
        total = total + tw.load(X[m, n : n + BN], fill=0.0)
    mean = tw.sum(total, axis=0) / N
    sq = tw.zeros(f32, (BN,))
    for n in tw.range(0, N, BN):
        x = tw.load(X[m, n : n + BN], fill=0.0)
        d = tw.where(n + tw.arange(BN) < N, x - mean, 0.0)
        sq = sq + d * d
    rstd = tw.rsqrt(tw.sum(sq, axis=0) / N + 1e-5)
    for n in tw.range(0, N, BN):
        x = tw.load(X[m, n : n + BN], fill=0.0)
        tw.store(Y[m, n : n + BN], (x - mean) * rstd)
