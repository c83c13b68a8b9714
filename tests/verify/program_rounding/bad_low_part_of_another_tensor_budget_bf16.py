import tilewright as tw
from tilewright import bf16, f16, f32, f64, i32, i16, u8, i8, u32, i64, e4m3, e5m2, tf32
N = tw.sizes("N")
M = tw.sizes("M")

@tw.kernel(target="sm_80", computes="H[n] = bf16(X[n]); L[n] = bf16(X[n] - f32(bf16(X[n])))")
def split(X: tw.Tensor(f32, N), H: tw.Tensor(bf16, N), L: tw.Tensor(bf16, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(H[i], x.to(bf16))
    tw.store(L[i], (x - x.to(bf16).to(f32)).to(bf16))

@tw.kernel(target="sm_80", computes="Y[n] = f32(H[n]) + f32(L[n])")
def add(H: tw.Tensor(bf16, N), L: tw.Tensor(bf16, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    h = tw.load(H[i : i + 128], fill=0.0)
    l = tw.load(L[i : i + 128], fill=0.0)
    tw.store(Y[i], h.to(f32) + l.to(f32))

@tw.program(computes="""Y[n] = f32(bf16(A[n]))""")
def whole(A: tw.Tensor(f32, N), B: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    H = tw.buffer(bf16, N)
    L = tw.buffer(bf16, N)
    H2 = tw.buffer(bf16, N)
    L2 = tw.buffer(bf16, N)
    split(A, H, L)
    split(B, H2, L2)
    add(H, L2, Y)
