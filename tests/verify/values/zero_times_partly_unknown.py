"""Causal masks over rows of which some lie behind the tensor: 0 times what is unknown for those rows alone is 0 for all others."""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.inline
def masked(X, m):
    x = tw.load(X[m : m + 4, 0:256], fill=float("-inf"), layout=tw.warp_rows(vector=2))
    s = tw.where(tw.coord(x, 1) <= tw.coord(x, 0) + m, x, float("-inf"))
    return tw.exp(s - tw.max(s, axis=1)[:, None])


@tw.kernel(target="sm_80", threads=128, computes="let s[m, n] = where(n <= m, X[m, n], -inf); Y[m, n] = softmax(n, s[m, n])")
def ok_causal_softmax(X: tw.Tensor(f32, N, N), Y: tw.Tensor(f32, N, N)):
    tw.assume(1 <= N and N <= 256)
    m = tw.grid(tw.cdiv(N, 4)) * 4
    e = masked(X, m)
    tw.store(Y[m : m + 4, 0:256], e / tw.sum(e, axis=1)[:, None])


TOP = "let top[m] = max(k in 0:m+1, X[m, k]); let total[m] = sum(j in 0:m+1, exp(X[m, j] - top[m]));"


@tw.kernel(target="sm_80", threads=128, computes=TOP + "Y[m, n] = where(n <= m, exp(X[m, n] - top[m]) / total[m], 1 / total[m])")
def bad_masked_weight_of_one(X: tw.Tensor(f32, N, N), Y: tw.Tensor(f32, N, N)):
    tw.assume(1 <= N and N <= 256)
    m = tw.grid(tw.cdiv(N, 4)) * 4
    e = masked(X, m)
    tw.store(Y[m : m + 4, 0:256], e / tw.sum(e, axis=1)[:, None])


@tw.kernel(target="sm_80", threads=128, computes=TOP + "Y[m, n] = where(n <= m, exp(X[m, n] - top[m]) * total[m], total[m])")
def bad_masked_product(X: tw.Tensor(f32, N, N), Y: tw.Tensor(f32, N, N)):
    tw.assume(1 <= N and N <= 256)
    m = tw.grid(tw.cdiv(N, 4)) * 4
    e = masked(X, m)
    tw.store(Y[m : m + 4, 0:256], e * tw.sum(e, axis=1)[:, None])


@tw.kernel(target="sm_80", threads=128, computes=TOP + "Y[m, n] = where(n <= m, exp(X[m, n] - top[m]) * total[m], total[m]) + 1")
def bad_masked_product_and_one(X: tw.Tensor(f32, N, N), Y: tw.Tensor(f32, N, N)):
    tw.assume(1 <= N and N <= 256)
    m = tw.grid(tw.cdiv(N, 4)) * 4
    e = masked(X, m)
    tw.store(Y[m : m + 4, 0:256], e * tw.sum(e, axis=1)[:, None] + 1.0)


@tw.kernel(target="sm_80", threads=128, computes=TOP + "S[m] = sum(n in 0:m+1, exp(X[m, n] - top[m]) * total[m]) + (256 - m - 1) * total[m]")
def bad_sum_of_masked_products(X: tw.Tensor(f32, N, N), S: tw.Tensor(f32, N)):
    tw.assume(1 <= N and N <= 256)
    m = tw.grid(tw.cdiv(N, 4)) * 4
    e = masked(X, m)
    tw.store(S[m : m + 4], tw.sum(e * tw.sum(e, axis=1)[:, None], axis=1))


@tw.kernel(target="sm_80", threads=128, computes=TOP + "S[m] = total[m] * total[m]")
def ok_sum_of_masked_products(X: tw.Tensor(f32, N, N), S: tw.Tensor(f32, N)):
    tw.assume(1 <= N and N <= 256)
    m = tw.grid(tw.cdiv(N, 4)) * 4
    e = masked(X, m)
    tw.store(S[m : m + 4], tw.sum(e * tw.sum(e, axis=1)[:, None], axis=1))
