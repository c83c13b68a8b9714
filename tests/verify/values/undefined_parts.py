"""What comes together from two parts and is then taken away leaves nothing only where it has a value: sums over a row and over its parts."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", threads=128, computes="Y[m] = 0")
def bad_logarithms_less_first_less_rest(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    tw.assume(2 <= N and N <= 64)
    m = tw.grid(M)
    x = tw.load(X[m, 0:64], fill=1.0)
    z = tw.load(X[m, 1:64], fill=1.0)
    tw.store(Y[m], tw.sum(tw.log(x), axis=0) - tw.log(tw.load(X[m, 0])) - tw.sum(tw.log(z), axis=0))


@tw.kernel(target="sm_80", threads=128, computes="Y[m] = X[m, 0]")
def bad_logarithms_less_both_halves(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    tw.assume(N == 64)
    m = tw.grid(M)
    x = tw.log(tw.load(X[m, 0:64], fill=1.0))
    z = tw.log(tw.load(X[m, 0:32], fill=1.0))
    w = tw.log(tw.load(X[m, 32:64], fill=1.0))
    tw.store(Y[m], tw.load(X[m, 0]) + tw.sum(x, axis=0) - tw.sum(z, axis=0) - tw.sum(w, axis=0))


@tw.kernel(target="sm_80", threads=128, computes="Y[m] = 2")
def bad_roots_less_first_less_rest(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    tw.assume(2 <= N and N <= 64)
    m = tw.grid(M)
    x = tw.load(X[m, 0:64], fill=1.0)
    z = tw.load(X[m, 1:64], fill=1.0)
    tw.store(Y[m], 2.0 + tw.sum(tw.sqrt(x), axis=0) - tw.sqrt(tw.load(X[m, 0])) - tw.sum(tw.sqrt(z), axis=0))


@tw.kernel(target="sm_80", threads=128, computes="Y[m] = 1")
def bad_product_over_first_and_rest(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    tw.assume(2 <= N and N <= 64)
    m = tw.grid(M)
    x = tw.load(X[m, 0:64], fill=1.0)
    z = tw.load(X[m, 1:64], fill=1.0)
    tw.store(Y[m], tw.prod(x, axis=0) / (tw.load(X[m, 0]) * tw.prod(z, axis=0)))


@tw.kernel(target="sm_80", threads=128, computes="Y[m] = X[m, 0]")
def ok_exponentials_less_both_halves(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    tw.assume(N == 64)
    m = tw.grid(M)
    x = tw.exp(tw.load(X[m, 0:64], fill=1.0))
    z = tw.exp(tw.load(X[m, 0:32], fill=1.0))
    w = tw.exp(tw.load(X[m, 32:64], fill=1.0))
    tw.store(Y[m], tw.load(X[m, 0]) + tw.sum(x, axis=0) - tw.sum(z, axis=0) - tw.sum(w, axis=0))
