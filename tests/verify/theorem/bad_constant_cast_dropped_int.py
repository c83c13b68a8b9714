import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, f64, i8, i32, u8

N = tw.sizes("N")

@tw.kernel(target="sm_80", computes="Y[n] = X[n] * 2.7")
def s(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i], x * tw.full(f32, (128,), 2.7).to(i32).to(f32))
