"""tw.shuffle in its four forms, one element a lane and vectors of them."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[n] = where(n % 2 == 0, X[n] * c[n] - X[n + 1] * s[n], X[n] * c[n] + X[n - 1] * s[n])")
def rotated_pairs(X: tw.Tensor(f32, N), c: tw.Tensor(f32, N), s: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    """Neighbours are turned by an angle (rotary embedding, interleaved form): the other one of a pair is in the neighbouring lane."""
    tw.assume(N % 2 == 0)
    i = tw.grid(tw.cdiv(N, 256)) * 256
    x = tw.load(X[i : i + 256], fill=0.0, layout=tw.blocked(vector=1))
    other = tw.shuffle(x, xor=1)
    sign = tw.where(tw.arange(256) % 2 == 0, -1.0, 1.0)
    tw.store(Y[i], x * tw.load(c[i : i + 256], fill=0.0) + sign * other * tw.load(s[i : i + 256], fill=0.0))


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n] / (1 + sum(k in 0:32, X[m, k] * X[m, k]))")
def normalised_rows(X: tw.Tensor(f32, M, 32), Y: tw.Tensor(f32, M, 32)):
    """The sum over a warp, by hand: five butterflies."""
    i = tw.grid(tw.cdiv(M, 4)) * 4
    x = tw.load(X[i : i + 4, 0:32], fill=0.0, layout=tw.blocked(vector=1))
    total = x * x
    for b in tw.unroll(5):
        total = total + tw.shuffle(total, xor=1 << b)
    tw.store(Y[i, 0], x / (1.0 + total))


@tw.kernel(target="sm_80", computes="Y[m, n] = where(n < 32 - 3, X[m, n + 3], X[m, n]) - where(n >= 1, X[m, n - 1], X[m, n]) * X[m, 5]")
def neighbours(X: tw.Tensor(f32, M, 32), Y: tw.Tensor(f32, M, 32)):
    """The lane three after, the lane before, and one lane for all."""
    i = tw.grid(tw.cdiv(M, 4)) * 4
    x = tw.load(X[i : i + 4, 0:32], fill=0.0, layout=tw.blocked(vector=1))
    tw.store(Y[i, 0], tw.shuffle(x, down=3) - tw.shuffle(x, up=1) * tw.shuffle(x, lane=5))


@tw.kernel(target="sm_80", computes="Y[n] = X[n // 16 * 16 + (n + 8) % 16]")
def exchanged_vectors(X: tw.Tensor(bf16, N), Y: tw.Tensor(bf16, N)):
    """Whole vectors of eight change places with the neighbour's: packed words are moved as they are."""
    tw.assume(N % 16 == 0)
    i = tw.grid(tw.cdiv(N, 1024)) * 1024
    x = tw.load(X[i : i + 1024], fill=0.0, layout=tw.blocked(vector=8))
    tw.store(Y[i], tw.shuffle(x, xor=1))
