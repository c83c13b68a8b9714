import tilewright as tw
from tilewright import bf16, f16, f32, f64, i32, i16, u8, i8, u32, i64, e4m3, e5m2, tf32
N = tw.sizes("N")
M = tw.sizes("M")

@tw.kernel(target="sm_80", computes="T[n] = f16(X[n] * 3)")
def first(X: tw.Tensor(f32, N), T: tw.Tensor(f16, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(T[i], (x * 3.0).to(f16))

@tw.kernel(target="sm_80", computes="Y[n] = ceil(f32(T[n])) + floor(f32(f16(Z[n])))")
def second(T: tw.Tensor(f16, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    t = tw.load(T[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    tw.store(Y[i], tw.ceil(t.to(f32)) + tw.floor(z.to(f16).to(f32)))

@tw.program(computes="""Y[n] = ceil(X[n] * 3) + floor(f32(f16(Z[n])))""")
def whole(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    T = tw.buffer(f16, N)
    first(X, T)
    second(T, Z, Y)
