import tilewright as tw
from tilewright import bf16, f16, f32, f64, i32, i16, u8, i8, u32, i64, e4m3, e5m2, tf32
M, N, K = tw.sizes("M N K")

@tw.kernel(target="sm_80", computes="""Y[n] = i32(where(Z[n] > 0, f32(e4m3(X[n])), 200))""", threads=128)
def k(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(i32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    tw.store(Y[i], tw.where(z > 0.0, x.to(e4m3), 200.0).to(f32).to(i32))
