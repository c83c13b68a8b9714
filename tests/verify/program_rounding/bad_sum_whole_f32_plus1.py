import tilewright as tw
from tilewright import bf16, f16, f32, f64, i32, i16, u8, i8, u32, i64, e4m3, e5m2, tf32
N = tw.sizes("N")
M = tw.sizes("M")

@tw.kernel(target="sm_80", computes="T[n] = f32(X[n]) + 1")
def first(X: tw.Tensor(i32, N), T: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0)
    one = tw.full(f32, (128,), 1.0)
    tw.store(T[i], x.to(f32) + 1.0)

@tw.kernel(target="sm_80", computes="Y[n] = where(T[n] - 1 == 16777216, 1, 0)")
def second(T: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    t = tw.load(T[i : i + 128], fill=0.0)
    one = tw.full(f32, (128,), 1.0)
    tw.store(Y[i], tw.where(t - 1.0 == 16777216.0, one, 0.0))

@tw.program(computes="""Y[n] = where(X[n] == 16777216, 1, 0)""")
def whole(X: tw.Tensor(i32, N), Y: tw.Tensor(f32, N)):
    T = tw.buffer(f32, N)
    first(X, T)
    second(T, Y)
