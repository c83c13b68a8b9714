"""Softmax where data say which elements count."""
import tilewright as tw
from tilewright import f32, i32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", threads=128, computes="let s[m, n] = where(B[m, n] != 0, X[m, n], -inf); Y[m, n] = softmax(n, s[m, n])")
def ok_softmax_under_data(X: tw.Tensor(f32, M, N), B: tw.Tensor(i32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(1 <= N and N <= 512)
    m = tw.grid(M)
    x = tw.load(X[m, 0:512], fill=float("-inf"))
    b = tw.load(B[m, 0:512], fill=0)
    s = tw.where(b != 0, x, float("-inf"))
    e = tw.exp(s - tw.max(s, axis=0))
    tw.store(Y[m, 0:512], e / tw.sum(e, axis=0))


@tw.kernel(target="sm_80", threads=128, computes="let s[m, n] = where(B[m, n] != 0, X[m, n], -inf); Y[m, n] = softmax(n, s[m, n])")
def bad_softmax_under_other_data(X: tw.Tensor(f32, M, N), B: tw.Tensor(i32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(1 <= N and N <= 512)
    m = tw.grid(M)
    x = tw.load(X[m, 0:512], fill=float("-inf"))
    b = tw.load(B[m, 0:512], fill=0)
    s = tw.where(b > 0, x, float("-inf"))
    e = tw.exp(s - tw.max(s, axis=0))
    tw.store(Y[m, 0:512], e / tw.sum(e, axis=0))


@tw.kernel(target="sm_80", threads=128, computes="let s[m, n] = where(B[m, n] != 0, X[m, n], -inf); Y[m, n] = softmax(n, s[m, n])")
def bad_softmax_of_all(X: tw.Tensor(f32, M, N), B: tw.Tensor(i32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(1 <= N and N <= 512)
    m = tw.grid(M)
    x = tw.load(X[m, 0:512], fill=float("-inf"))
    b = tw.load(B[m, 0:512], fill=0)
    s = tw.where(b != 0, x, float("-inf"))
    e = tw.exp(s - tw.max(s, axis=0))
    tw.store(Y[m, 0:512], e / tw.sum(tw.exp(x - tw.max(s, axis=0)), axis=0))


@tw.kernel(target="sm_80", threads=128, computes="let s[m, n] = where(B[m, n] != 0, X[m, n], -inf); Y[m, n] = exp(s[m, n])")
def bad_exponential_cancels(X: tw.Tensor(f32, M, N), B: tw.Tensor(i32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(1 <= N and N <= 512)
    m = tw.grid(M)
    x = tw.load(X[m, 0:512], fill=float("-inf"))
    b = tw.load(B[m, 0:512], fill=0)
    s = tw.where(b != 0, x, float("-inf"))
    e = tw.exp(s - tw.max(s, axis=0))
    tw.store(Y[m, 0:512], e * tw.exp(tw.max(s, axis=0)))


@tw.kernel(target="sm_80", threads=128, computes="Y[m, n] = 0")
def bad_maximum_cancels(X: tw.Tensor(f32, M, N), B: tw.Tensor(i32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(1 <= N and N <= 512)
    m = tw.grid(M)
    x = tw.load(X[m, 0:512], fill=float("-inf"))
    b = tw.load(B[m, 0:512], fill=0)
    s = tw.where(b != 0, x, float("-inf"))
    e = tw.exp(s - tw.max(s, axis=0))
    tw.store(Y[m, 0:512], tw.max(s, axis=0) - tw.max(s, axis=0) + x * 0.0)

