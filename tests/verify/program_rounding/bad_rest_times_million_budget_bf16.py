import tilewright as tw
from tilewright import bf16, f16, f32, f64, i32, i16, u8, i8, u32, i64, e4m3, e5m2, tf32
N = tw.sizes("N")
M = tw.sizes("M")

@tw.kernel(target="sm_80", computes="T[n] = X[n] - f32(bf16(X[n]))")
def rest(X: tw.Tensor(f32, N), T: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(T[i], x - x.to(bf16).to(f32))

@tw.kernel(target="sm_80", computes="Y[n] = Z[n] + T[n] * 1000000")
def plus(Z: tw.Tensor(f32, N), T: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    z = tw.load(Z[i : i + 128], fill=0.0)
    t = tw.load(T[i : i + 128], fill=0.0)
    tw.store(Y[i], z + t * 1000000.0)

@tw.program(computes="""Y[n] = f32(bf16(Z[n]))""")
def whole(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    T = tw.buffer(f32, N)
    rest(X, T)
    plus(Z, T, Y)
