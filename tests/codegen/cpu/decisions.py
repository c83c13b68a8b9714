"""One kernel for each decision that the printer takes by itself and no shipped kernel for CPUs shows (docs/trusted-base.md)."""
import tilewright as tw
from tilewright import bf16, e4m3, f32, f64, i8

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", threads=64)
def voted(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    """A warp takes a branch when one of its values asks for it; the ways differ, so that a wrong vote shows."""
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    y = x * 2.0
    if tw.any(x > 0.97):
        y = x * 3.0
    tw.store(Y[i], y)


@tw.kernel(target="sm_80", threads=32)
def rescaled(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, 1024)):
    """Products with factors that are often 1 are left out where they all are."""
    m = tw.grid(M)
    x = tw.load(X[m : m + 1, 0:1024], fill=0.5, layout=tw.rows())
    for c in tw.range(tw.cdiv(N, 256)):
        top = tw.max(x, axis=1)
        factor = tw.where(top > 0.6, 0.5, 1.0)
        x = x * factor[:, None]
    tw.store(Y[m, 0], x)


@tw.kernel(target="sm_80", threads=32)
def counted(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    """A counter of a ring is printed with its slot and its phase beside it."""
    m = tw.grid(M)
    c = 0
    for k in tw.range(tw.cdiv(N, 64)):
        slot = c % 3
        phase = c // 3 % 2
        other = (c // 3 + 1) % 2
        x = tw.load(X[m, k * 64 : k * 64 + 64], fill=0.0)
        tw.store(Y[m, k * 64], x * 4.0 + slot + phase * 8 + other * 16)
        c = c + 1
        if k % 5 == 4:
            c = 0


@tw.kernel(target="sm_80", threads=32)
def below_zero(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    """Quotients and remainders of negative numbers are rounded down."""
    m = tw.grid(M)
    low = (m - 7) // 3
    left = (m - 7) % 3
    up = m // 3 * 2 + m % 3
    for k in tw.range(tw.cdiv(N, 64)):
        x = tw.load(X[m, k * 64 : k * 64 + 64], fill=0.0)
        tw.store(Y[m, k * 64], x + low * 16 + left * 4 + up)


@tw.kernel(target="sm_80", threads=32)
def found_first(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M)):
    """Places of a value that is not the extreme of the thread's elements: each thread looks for itself."""
    m = tw.grid(M)
    x = tw.load(X[m : m + 1, 0:512], fill=-1.0, layout=tw.rows())
    top = tw.max(x, axis=1) * 1.0
    place = tw.where(x == top[:, None], tw.coord(x, 1).to(f32), float("inf"))
    tw.store(Y[m : m + 1], tw.min(place, axis=1))


@tw.kernel(target="sm_80", threads=32)
def bytes_in_words(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    """Bytes of shared memory are read in words."""
    m = tw.grid(M)
    s = tw.shared(i8, (256,))
    for k in tw.range(tw.cdiv(N, 256)):
        tw.sync()
        tw.store(s, (tw.load(X[m, k * 256 : k * 256 + 256], fill=0.0) * 100.0).to(i8))
        tw.sync()
        tw.store(Y[m, k * 256], tw.load(s, layout=tw.blocked(vector=8)).to(f32))


@tw.kernel(target="sm_80", threads=32)
def drawn(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    """Words of a counter, and the upper half of a product."""
    i = tw.grid(tw.cdiv(N, 128)) * 128
    n = tw.arange(128) + i
    word = tw.philox(n * 65537, -1, 4294967295, n, 7, 8, n)
    tw.store(Y[i], tw.load(X[i : i + 128], fill=0.0) + tw.mulhi(word, 1000).to(f32) + tw.uniform(word))


@tw.kernel(target="sm_80", threads=32)
def narrow_vectors(X: tw.Tensor(i8, M, N), Y: tw.Tensor(i8, M, N), Q: tw.Tensor(e4m3, M, N), Z: tw.Tensor(f64, M, N)):
    """Elements that are no words go to memory, and come from it, in words."""
    tw.assume(N % 8 == 0)
    m = tw.grid(M)
    for k in tw.range(tw.cdiv(N, 256)):
        x = tw.load(X[m, k * 256 : k * 256 + 256], fill=3, layout=tw.blocked(vector=8))
        s = tw.shared(i8, (256,))
        tw.store(s, x)
        tw.sync()
        y = tw.load(s, layout=tw.blocked(vector=4))
        tw.sync()
        tw.store(Y[m, k * 256 : k * 256 + 256], (y.to(f32) * -1.0).to(i8))
        tw.store(Q[m, k * 256 : k * 256 + 256], (x.to(f32) * 0.37).to(e4m3))
        tw.store(Z[m, k * 256 : k * 256 + 256], x.to(f64))


@tw.kernel(target="sm_80", threads=32)
def narrow_edges(X: tw.Tensor(i8, M, N), Y: tw.Tensor(i8, M, N), n: tw.scalar(f32)):
    """The same where a vector may lie across an end."""
    m = tw.grid(M)
    for k in tw.range(tw.cdiv(N, 256)):
        x = tw.load(X[m, k * 256 - m % 8 * (N % 8) % 8 : k * 256 - m % 8 * (N % 8) % 8 + 256], fill=3)
        tw.store(Y[m, k * 256 - m % 8 * (N % 8) % 8 : k * 256 - m % 8 * (N % 8) % 8 + 256], (x.to(f32) * -1.0).to(i8))


@tw.kernel(target="sm_90a", threads=32)
def sums_in_vectors(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, N, zeroed=True)):
    """Four neighbours are added by one instruction where none of them can lie beyond the end, or none can lie before it."""
    tw.assume(N % 4 == 0)
    m = tw.grid(M)
    for k in tw.range(tw.cdiv(N, 256)):
        tw.atomic_add(Y[k * 256 : k * 256 + 256], tw.load(X[m, k * 256 : k * 256 + 256], fill=0.0))
