import tilewright as tw
from tilewright import f32, f64

N = tw.sizes("N")

@tw.kernel(target="sm_80", computes="Y[n] = f64(X[n])")
def s(X: tw.Tensor(f64, N), Y: tw.Tensor(f64, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Y[i], tw.load(X[i : i + 128], fill=0.0).to(f32).to(f64))
