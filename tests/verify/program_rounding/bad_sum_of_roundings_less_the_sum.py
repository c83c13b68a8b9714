import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m] = sum(n, f32(bf16(X[m, n])))", threads=128)
def rounded_sum(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    tw.assume(N <= 1024)
    m = tw.grid(M)
    tw.store(Y[m], tw.sum(tw.load(X[m, 0:1024], fill=0.0).to(bf16).to(f32), axis=0))


@tw.kernel(target="sm_80", computes="Y[m] = sum(n, X[m, n])", threads=128)
def whole_sum(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    tw.assume(N <= 1024)
    m = tw.grid(M)
    tw.store(Y[m], tw.sum(tw.load(X[m, 0:1024], fill=0.0), axis=0))


@tw.kernel(target="sm_80", computes="Y[n] = Z[n] + 1000000 * (A[n] - B[n])", threads=128)
def with_difference(A: tw.Tensor(f32, N), B: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    difference = tw.load(A[i : i + 128], fill=0.0) - tw.load(B[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], tw.load(Z[i : i + 128], fill=0.0) + 1000000.0 * difference)


@tw.program(computes="Y[n] = f32(bf16(Z[n]))")
def both(X: tw.Tensor(f32, M, N), Z: tw.Tensor(f32, M), Y: tw.Tensor(f32, M)):
    A = tw.buffer(f32, M)
    B = tw.buffer(f32, M)
    rounded_sum(X, A)
    whole_sum(X, B)
    with_difference(A, B, Z, Y)
