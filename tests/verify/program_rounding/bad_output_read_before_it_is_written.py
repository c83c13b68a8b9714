import tilewright as tw
from tilewright import bf16, f16, f32, i32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="B[n] = A[n] * 3.0", threads=64)
def k(A: tw.Tensor(f32, N), B: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 32)) * 32
    tw.store(B[i], tw.load(A[i : i + 32], fill=0.0) * 3.0)


@tw.kernel(target="sm_80", computes="C[n] = A[n] - B[n]", threads=64)
def both(A: tw.Tensor(f32, N), B: tw.Tensor(f32, N), C: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 32)) * 32
    tw.store(C[i], tw.load(A[i : i + 32], fill=0.0) - tw.load(B[i : i + 32], fill=0.0))


@tw.kernel(target="sm_80", computes="B[n] = where(n + 1 < N, A[minimum(n + 1, N - 1)], 0.0)", threads=64)
def next(A: tw.Tensor(f32, N), B: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 32)) * 32
    tw.store(B[i], tw.load(A[i + 1 : i + 1 + 32], fill=0.0))


@tw.program(computes="Y[n] = ((where(n + 1 < N, X[minimum(n + 1, N - 1)], 0.0) - where(n + 1 < N, X[minimum(n + 1, N - 1)], 0.0)) - (where(n + 1 < N, X[minimum(n + 1, N - 1)], 0.0) - where(n + 1 < N, X[minimum(n + 1, N - 1)], 0.0)))")
def whole(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    T0 = tw.buffer(f32, N)
    both(Y, Y, T0)
    T1 = tw.buffer(f32, N)
    next(T0, T1)
    both(T1, T1, Y)
