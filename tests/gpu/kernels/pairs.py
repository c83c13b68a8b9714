"""Maxima and minima of 16-bit tiles, two elements an instruction: of a thread's words, of an odd number of warps, of pairs of columns, element by element."""
import tilewright as tw
from tilewright import bf16, f16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="S[m] = max(n, f32(X[m, n]))", threads=96)
def row_maxima(X: tw.Tensor(bf16, M, N), S: tw.Tensor(f32, M)):
    tw.assume(N <= 768)
    m = tw.grid(M)
    tw.store(S[m], tw.max(tw.load(X[m, 0:768], fill=float("-inf")), axis=0).to(f32))


@tw.kernel(target="sm_80", computes="S[m] = bf16(max(n, f32(X[m, n])))", threads=64)
def short_row_maxima(X: tw.Tensor(bf16, M, N), S: tw.Tensor(bf16, M)):
    tw.assume(N <= 64)
    tw.assume(N % 8 == 0)
    m = tw.grid(tw.cdiv(M, 32)) * 32
    tw.store(S[m : m + 32], tw.max(tw.load(X[m : m + 32, 0:64], fill=float("-inf")), axis=1))


@tw.kernel(target="sm_80", computes="S[n] = bf16(min(m, f32(X[m, n])))", threads=64)
def column_minima(X: tw.Tensor(bf16, M, N), S: tw.Tensor(bf16, N)):
    tw.assume(M <= 32)
    tw.assume(N % 8 == 0)
    n = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(S[n : n + 128], tw.min(tw.load(X[0:32, n : n + 128], fill=float("inf")), axis=0))


@tw.kernel(target="sm_80", computes="Y[m, n] = bf16(max(-1, min(f32(X[m, n]), f32(Z[m, n]))))", threads=64)
def clipped(X: tw.Tensor(bf16, M, N), Z: tw.Tensor(bf16, M, N), Y: tw.Tensor(bf16, M, N)):
    m, n = tw.grid(M, tw.cdiv(N, 512))
    x = tw.load(X[m, n * 512 : n * 512 + 512], fill=0.0)
    z = tw.load(Z[m, n * 512 : n * 512 + 512], fill=0.0)
    tw.store(Y[m, n * 512 : n * 512 + 512], tw.maximum(tw.minimum(x, z), -1.0))


@tw.kernel(target="sm_80", computes="S[m] = min(n, f32(X[m, n]))", threads=64)
def row_minima(X: tw.Tensor(f16, M, N), S: tw.Tensor(f32, M)):
    tw.assume(N <= 512)
    m = tw.grid(M)
    tw.store(S[m], tw.min(tw.load(X[m, 0:512], fill=float("inf")), axis=0).to(f32))
