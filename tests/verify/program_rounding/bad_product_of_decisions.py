import tilewright as tw
from tilewright import bf16, f16, f32, f64, i32, i16, u8, i8, u32, i64, e4m3, e5m2, tf32
N = tw.sizes("N")
M = tw.sizes("M")

@tw.kernel(target="sm_80", computes="T[n] = bf16(X[n])")
def first(X: tw.Tensor(f32, N), T: tw.Tensor(bf16, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    one = tw.full(f32, (128,), 1.0)
    tw.store(T[i], x.to(bf16))

@tw.kernel(target="sm_80", computes="Y[n] = maximum(where(f32(T[n]) > Z[n], 1, 0), f32(i32(Z[n])))")
def second(T: tw.Tensor(bf16, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    t = tw.load(T[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    one = tw.full(f32, (128,), 1.0)
    tw.store(Y[i], tw.maximum(tw.where(t.to(f32) > z, one, 0.0), z.to(i32).to(f32)))

@tw.program(computes="""Y[n] = maximum(where(X[n] > Z[n], 1, 0), f32(i32(Z[n])))""")
def whole(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    T = tw.buffer(bf16, N)
    first(X, T)
    second(T, Z, Y)
