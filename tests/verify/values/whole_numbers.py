"""Remainders by hand, and where extremes of whole numbers start."""
import tilewright as tw
from tilewright import i32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = X[n] % 5")
def ok_remainder(X: tw.Tensor(i32, N), Y: tw.Tensor(i32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0)
    tw.store(Y[i : i + 128], x - x // 5 * 5)


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = X[n] - X[n] // 5 * 5")
def ok_remainder_turned(X: tw.Tensor(i32, N), Y: tw.Tensor(i32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0)
    tw.store(Y[i : i + 128], x % 5)


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = X[n] % (0 - 5)")
def ok_remainder_by_less_than_zero(X: tw.Tensor(i32, N), Y: tw.Tensor(i32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0)
    tw.store(Y[i : i + 128], x - x // -5 * -5)


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = X[n] // 5 * 10 + X[n] % 5")
def ok_digits(X: tw.Tensor(i32, N, range=(0, 1000000)), Y: tw.Tensor(i32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0)
    tw.store(Y[i : i + 128], x // 5 * 10 + (x - x // 5 * 5))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = X[n] % 5")
def bad_remainder_by_another(X: tw.Tensor(i32, N), Y: tw.Tensor(i32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0)
    tw.store(Y[i : i + 128], x - x // 5 * 4)


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = X[n] % 5")
def bad_remainder_by_six(X: tw.Tensor(i32, N), Y: tw.Tensor(i32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0)
    tw.store(Y[i : i + 128], x - x // 6 * 6)


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = X[n] % 5")
def bad_remainder_sign(X: tw.Tensor(i32, N), Y: tw.Tensor(i32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0)
    tw.store(Y[i : i + 128], x - x // -5 * -5)


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = X[n] % 5")
def bad_remainder_of_the_next(X: tw.Tensor(i32, N), Y: tw.Tensor(i32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0)
    tw.store(Y[i : i + 128], x + 1 - (x + 1) // 5 * 5)


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = X[n] % 5")
def bad_remainder_and_one(X: tw.Tensor(i32, N), Y: tw.Tensor(i32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0)
    tw.store(Y[i : i + 128], x - x // 5 * 5 + 1)


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = X[n] % 5")
def bad_remainder_of_i8(X: tw.Tensor(tw.i8, N), Y: tw.Tensor(tw.i8, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0)
    tw.store(Y[i : i + 128], (x + x) - (x + x) // 5 * 5)


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = i32(X[n] - 5 * floor(X[n] / 5)) + 1")
def bad_float_remainder_is_whole(X: tw.Tensor(i32, N), Y: tw.Tensor(i32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0)
    tw.store(Y[i : i + 128], (x % 5).to(i32))


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = min(m, X[m, n])")
def ok_least(X: tw.Tensor(i32, M, N), Y: tw.Tensor(i32, N)):
    tw.assume(1 <= M)
    i = tw.grid(tw.cdiv(N, 128)) * 128
    most = tw.full(i32, (128,), 2147483647)
    for m in tw.range(M):
        most = tw.minimum(most, tw.load(X[m, i : i + 128], fill=0))
    tw.store(Y[i : i + 128], most)


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = max(m, X[m, n])")
def ok_largest(X: tw.Tensor(i32, M, N), Y: tw.Tensor(i32, N)):
    tw.assume(1 <= M)
    i = tw.grid(tw.cdiv(N, 128)) * 128
    most = tw.full(i32, (128,), -2147483648)
    for m in tw.range(M):
        most = tw.maximum(most, tw.load(X[m, i : i + 128], fill=0))
    tw.store(Y[i : i + 128], most)


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = min(m, i32(X[m, n]))")
def ok_least_of_bytes(X: tw.Tensor(tw.u8, M, N), Y: tw.Tensor(i32, N)):
    tw.assume(1 <= M)
    i = tw.grid(tw.cdiv(N, 128)) * 128
    most = tw.full(i32, (128,), 255)
    for m in tw.range(M):
        most = tw.minimum(most, tw.load(X[m, i : i + 128], fill=0).to(i32))
    tw.store(Y[i : i + 128], most)


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = min(m, X[m, n])")
def bad_least(X: tw.Tensor(i32, M, N), Y: tw.Tensor(i32, N)):
    tw.assume(1 <= M)
    i = tw.grid(tw.cdiv(N, 128)) * 128
    most = tw.full(i32, (128,), 2147483646)
    for m in tw.range(M):
        most = tw.minimum(most, tw.load(X[m, i : i + 128], fill=0))
    tw.store(Y[i : i + 128], most)


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = max(m, X[m, n])")
def bad_largest(X: tw.Tensor(i32, M, N), Y: tw.Tensor(i32, N)):
    tw.assume(1 <= M)
    i = tw.grid(tw.cdiv(N, 128)) * 128
    most = tw.full(i32, (128,), -2147483647)
    for m in tw.range(M):
        most = tw.maximum(most, tw.load(X[m, i : i + 128], fill=0))
    tw.store(Y[i : i + 128], most)


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = min(m, i32(X[m, n]))")
def bad_least_of_bytes(X: tw.Tensor(tw.u8, M, N), Y: tw.Tensor(i32, N)):
    tw.assume(1 <= M)
    i = tw.grid(tw.cdiv(N, 128)) * 128
    most = tw.full(i32, (128,), 254)
    for m in tw.range(M):
        most = tw.minimum(most, tw.load(X[m, i : i + 128], fill=0).to(i32))
    tw.store(Y[i : i + 128], most)


@tw.kernel(target="sm_80", threads=128, computes="Y[n] = max(m, i32(X[m, n]))")
def bad_largest_of_bytes(X: tw.Tensor(tw.u8, M, N), Y: tw.Tensor(i32, N)):
    tw.assume(1 <= M)
    i = tw.grid(tw.cdiv(N, 128)) * 128
    most = tw.full(i32, (128,), 1)
    for m in tw.range(M):
        most = tw.maximum(most, tw.load(X[m, i : i + 128], fill=0).to(i32))
    tw.store(Y[i : i + 128], most)
