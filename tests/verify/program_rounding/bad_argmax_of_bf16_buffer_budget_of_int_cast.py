import tilewright as tw
from tilewright import bf16, f16, f32, f64, i32, i16, u8, i8, u32, i64, e4m3, e5m2, tf32
N = tw.sizes("N")
M = tw.sizes("M")

@tw.kernel(target="sm_80", computes="T[n] = bf16(X[n])")
def tob(X: tw.Tensor(f32, N), T: tw.Tensor(bf16, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(T[i], x.to(bf16))

@tw.kernel(target="sm_80", computes="I = f32(argmax(n, f32(T[n]))) + f32(i32(Z))", threads=128)
def am(T: tw.Tensor(bf16, N), Z: tw.Tensor(f32), I: tw.Tensor(f32)):
    tw.assume(1 <= N and N <= 1024)
    x = tw.load(T[0:1024], fill=0.0).to(f32)
    z = tw.load(Z)
    tw.store(I, tw.argmax(x, axis=0, limit=N).to(f32) + z.to(i32).to(f32))

@tw.program(computes="I = f32(argmax(n, X[n])) + f32(i32(Z))")
def whole(X: tw.Tensor(f32, N), Z: tw.Tensor(f32), I: tw.Tensor(f32)):
    T = tw.buffer(bf16, N)
    tob(X, T)
    am(T, Z, I)
