import tilewright as tw
from tilewright import bf16, f16, f32, f64, i32, u8, i8
N = tw.sizes("N")

@tw.kernel(target="sm_80", computes="T[n] = bf16(X[n] * 3)")
def tri(X: tw.Tensor(f32, N), T: tw.Tensor(bf16, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(T[i], (tw.load(X[i : i + 128], fill=0.0) * 3.0).to(bf16))

@tw.kernel(target="sm_80", computes="Y[n] = where(f32(T[n]) > 0.5, 1, 0) + where(f32(bf16(Z[n])) > 0.5, 1, 0)")
def cmp(T: tw.Tensor(bf16, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    t = tw.load(T[i : i + 128], fill=0.0).to(f32)
    z = tw.load(Z[i : i + 128], fill=0.0).to(bf16).to(f32)
    one = tw.full(f32, (128,), 1.0)
    tw.store(Y[i], tw.where(t > 0.5, one, 0.0) + tw.where(z > 0.5, one, 0.0))

@tw.program(computes="Y[n] = where(X[n] * 3 > 0.5, 1, 0) + where(f32(bf16(Z[n])) > 0.5, 1, 0)")
def prog_decision_budget_of_another(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    T = tw.buffer(bf16, N)
    tri(X, T)
    cmp(T, Z, Y)
