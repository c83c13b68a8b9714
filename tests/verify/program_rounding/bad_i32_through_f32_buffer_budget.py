import tilewright as tw
from tilewright import bf16, f16, f32, f64, i32, i16, u8, i8, u32, i64, e4m3, e5m2, tf32
N = tw.sizes("N")
M = tw.sizes("M")

@tw.kernel(target="sm_80", computes="T[n] = f32(X[n])")
def first(X: tw.Tensor(i32, N), T: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0)
    tw.store(T[i], x.to(f32))

@tw.kernel(target="sm_80", computes="Y[n] = i32(T[n]) + i32(Z[n])")
def second(T: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(i32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    t = tw.load(T[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    tw.store(Y[i], t.to(i32) + z.to(i32))

@tw.program(computes="""Y[n] = X[n] + i32(Z[n])""")
def whole(X: tw.Tensor(i32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(i32, N)):
    T = tw.buffer(f32, N)
    first(X, T)
    second(T, Z, Y)
