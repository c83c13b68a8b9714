import tilewright as tw
from tilewright import bf16, f16, f32, f64, i32, i16, u8, i8, u32, i64, e4m3, e5m2, tf32

@tw.kernel(target="sm_80", computes="T[n] = bf16(X[n] * 3)")
def lg(X: tw.Tensor(f32, 512), T: tw.Tensor(bf16, 512)):
    i = tw.grid(4) * 128
    x = tw.load(X[i : i + 128])
    one = tw.full(f32, (128,), 1.0)
    tw.store(T[i], (x * 3.0).to(bf16))

@tw.kernel(target="sm_80", computes="Y[n] = where(f32(T[n]) > 0.5, 1, 0) + f32(i32(Z[n]))")
def canc(T: tw.Tensor(bf16, 512), Z: tw.Tensor(f32, 512), Y: tw.Tensor(f32, 512)):
    i = tw.grid(4) * 128
    t = tw.load(T[i : i + 128])
    z = tw.load(Z[i : i + 128])
    one = tw.full(f32, (128,), 1.0)
    tw.store(Y[i], tw.where(t.to(f32) > 0.5, one, 0.0) + z.to(i32).to(f32))

@tw.program(computes="""let T[n in 0:512] = X[n // 256, n % 256] * 3; Y[n] = where(T[n] > 0.5, 1, 0) + f32(i32(Z[n]))""")
def whole(X: tw.Tensor(f32, 2, 256), Z: tw.Tensor(f32, 512), Y: tw.Tensor(f32, 512)):
    T = tw.buffer(bf16, 512)
    row = tw.view(X, 512)
    lg(row, T)
    canc(T, Z, Y)
