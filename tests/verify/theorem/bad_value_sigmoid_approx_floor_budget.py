import tilewright as tw
from tilewright import bf16, f16, f32, f64, i32, i16, u8, i8, u32, i64, e4m3, e5m2, tf32
N = tw.sizes("N")
M = tw.sizes("M")

@tw.kernel(target="sm_80", computes="Y[n] = floor(sigmoid(X[n]) * 1000) + f32(i32(Z[n]))")
def k(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    tw.store(Y[i], tw.floor(tw.sigmoid(x, approx=True) * 1000.0) + z.to(i32).to(f32))
