import tilewright as tw
from tilewright import f32, i32

M, K = tw.sizes("M K")

@tw.kernel(target="sm_80", computes="Y[m] = X[m]", threads=128)
def s(X: tw.Tensor(f32, M), W: tw.Tensor(f32, K), Y: tw.Tensor(f32, M)):
    i = tw.grid(tw.cdiv(M, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i], x * (K // K))
