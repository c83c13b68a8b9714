import tilewright as tw
from tilewright import bf16, f16, f32, f64, i32, i16, u8, i8, u32, i64, e4m3, e5m2, tf32
N = tw.sizes("N")
M = tw.sizes("M")

@tw.kernel(target="sm_80", computes="T[n] = bf16(X[n])")
def tob(X: tw.Tensor(f32, N), T: tw.Tensor(bf16, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    one = tw.full(f32, (128,), 1.0)
    z0 = tw.full(f32, (128,), 0.0)
    tw.store(T[i], x.to(bf16))

@tw.kernel(target="sm_80", computes="I = argmax(n, f32(T[n]))", threads=128)
def am(T: tw.Tensor(bf16, N), I: tw.Tensor(i32)):
    tw.assume(1 <= N and N <= 1024)
    x = tw.load(T[0:1024], fill=0.0).to(f32)
    tw.store(I, tw.argmax(x, axis=0, limit=N))

@tw.program(computes="I = argmax(n, f32(bf16(X[n])))")
def whole(X: tw.Tensor(f32, N), I: tw.Tensor(i32)):
    T = tw.buffer(bf16, N)
    tob(X, T)
    am(T, I)
