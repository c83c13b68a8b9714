import tilewright as tw
from tilewright import bf16, f16, f32, f64, i32, i16, u8, i8, u32, i64, e4m3, e5m2, tf32
N = tw.sizes("N")
M = tw.sizes("M")

@tw.kernel(target="sm_80", computes="T[n] = bf16(X[n])")
def castk(X: tw.Tensor(f32, N), T: tw.Tensor(bf16, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(T[i], x.to(bf16))

@tw.kernel(target="sm_80", computes="Y[n] = Z[n] + (X[n] - f32(T[n])) * 1000")
def subk(X: tw.Tensor(f32, N), T: tw.Tensor(bf16, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    t = tw.load(T[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    tw.store(Y[i], z + (x - t.to(f32)) * 1000.0)

@tw.program(computes="""Y[n] = f32(bf16(Z[n]))""")
def whole(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    T = tw.buffer(bf16, N)
    castk(X, T)
    subk(X, T, Z, Y)
