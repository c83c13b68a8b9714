import tilewright as tw
from tilewright import bf16, f16, f32, f64, i32, i16, u8, i8, u32, i64, e4m3, e5m2, tf32

@tw.kernel(target="sm_80", computes="T[n] = log(X[n])")
def lg(X: tw.Tensor(f32, 512), T: tw.Tensor(f32, 512)):
    i = tw.grid(4) * 128
    x = tw.load(X[i : i + 128])
    tw.store(T[i], tw.log(x))

@tw.kernel(target="sm_80", computes="Y[n] = T[n] - T[n] + 1")
def canc(T: tw.Tensor(f32, 512), Y: tw.Tensor(f32, 512)):
    i = tw.grid(4) * 128
    t = tw.load(T[i : i + 128])
    tw.store(Y[i], t - t + 1.0)

@tw.program(computes="""Y[n] = 1""")
def whole(X: tw.Tensor(f32, 2, 256), Y: tw.Tensor(f32, 512)):
    T = tw.buffer(f32, 512)
    row = tw.view(X, 512)
    lg(row, T)
    canc(T, Y)
