import tilewright as tw
from tilewright import bf16, f16, f32, f64, i32, i16, u8, i8, u32, i64, e4m3, e5m2, tf32
N = tw.sizes("N")
M = tw.sizes("M")

@tw.kernel(target="sm_80", computes="Y[n] = X[n] + f32(bf16(Z[n]))")
def k(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), W: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    w = tw.load(W[i : i + 128], fill=0.0)
    tw.store(Y[i], x + z + (w.to(f16).to(f32) - w.to(bf16).to(f32)))
