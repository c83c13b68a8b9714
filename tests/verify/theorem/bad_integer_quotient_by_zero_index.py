import tilewright as tw
from tilewright import f32

N = tw.sizes("N")

@tw.kernel(target="sm_80", computes="Y[n] = X[n] * 2.0", threads=128)
def s(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    t = tw.grid(tw.cdiv(N, 128))
    per = N - 77777
    r = t // per
    c = t % per
    n = (r * per + c) * 128
    tw.store(Y[n : n + 128], tw.load(X[n : n + 128], fill=0.0) * 2.0)
