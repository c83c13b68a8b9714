"""The position of the largest or the smallest element of each row (the first one, where several are equal; NaN never wins). Every row is read once."""
import tilewright as tw
from row_parts import larger, smaller
from tilewright import bf16, f32, i64

M, N = tw.sizes("M N")
HIGHEST = float("inf")
T, F, BYTES, FULL, THREADS = tw.parameters("T F BYTES FULL THREADS")

@tw.inline
def no_smaller(x, y):
    return x >= y


@tw.inline
def no_larger(x, y):
    return x <= y


# What is looked for: the better of two values, whether one is as good as another, the best of a tile and its place, and the worst there is.
MAX = tw.record(name="argmax", join=larger, as_good=no_smaller, best=tw.max, first=tw.argmax, start=float("-inf"))
MIN = tw.record(name="argmin", join=smaller, as_good=no_larger, best=tw.min, first=tw.argmin, start=float("inf"))


@tw.inline
def place_in(x, best, n, end):
    """The first place of the part from n to end that has the best value of the row. Folded in f32, which is exact up to 2^24."""
    return tw.min(tw.where((x == best) & (tw.coord(x, 0) < end - n), tw.coord(x, 0).to(f32) + n, HIGHEST), axis=0)


@tw.inline
def parts_of(X, m, F, T, BN):
    """A row of any pitch: the whole vectors that lie in it, and less than a vector before and behind them, one element a lane; where the vectors begin and end."""
    V = 16 // T.bytes
    first = (V - m % V * (N % V) % V) % V
    end = first + (N - first) // V * V
    x = tw.load(X[m, first : first + BN], fill=F.start, hint="streaming", limit=(end,))
    head = tw.load(X[m, 0:V], fill=F.start, limit=(first,))
    tail = tw.load(X[m, end : end + V], fill=F.start)
    return x, head, tail, first, end


@tw.inline
def place_of(parts, F):
    x, head, tail, first, end = parts
    best = F.join(F.best(x, axis=0), F.join(F.best(head, axis=0), F.best(tail, axis=0)))
    edges = tw.minimum(place_in(head, best, 0, first), place_in(tail, best, end, N))
    return tw.minimum(place_in(x, best, first, end), edges).to(i64)


@tw.inline
def rows_and_edges(X, S, F, T, BN, ROWS):
    """One row a block; or two, both of which are on their way before the first is looked at: a GPU does not start blocks of 2 KB as fast as memory brings their rows."""
    tw.assume(N >= 16 // T.bytes)
    tw.assume(N <= BN)
    if ROWS == 1:
        m = tw.grid(M)
        tw.store(S[m], place_of(parts_of(X, m, F, T, BN), F))
    else:
        tw.assume(M % 2 == 0)
        m = tw.grid(M // 2) * 2
        one = parts_of(X, m, F, T, BN)
        other = parts_of(X, m + 1, F, T, BN)
        tw.store(S[m], place_of(one, F))
        tw.store(S[m + 1], place_of(other, F))


@tw.signature(name="row_" + F.name, target="sm_80", computes="S[m] = F(n, f32(X[m, n]))")
def of_rows(X: tw.Tensor(T, M, N), S: tw.Tensor(i64, M), F: tw.each(MAX, MIN), T: tw.each(bf16, f32)):
    """The place of a row's best element."""


@tw.kernel(of_rows, threads=128, blocks_per_sm=8)
def of_warps(X, S, F, T: tw.each(bf16)):
    """Rows of 1024 elements of 16 bits, one a warp. It looks for the place only in windows, of a vector a lane, that have the row's best value."""
    BM, BN = 4, 1024
    W = 32 * (16 // T.bytes)
    tw.assume(N == BN)
    tw.assume(M % BM == 0)
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], hint="streaming", layout=tw.warp_rows(vector=16 // T.bytes)).to(f32)
    best = F.best(x, axis=1)
    place = tw.full(f32, (BM,), HIGHEST)
    for v in tw.unroll(BN // W):
        part = x[:, v * W : v * W + W]
        if tw.any(part == best[:, None]):
            place = tw.minimum(place, tw.min(tw.where(part == best[:, None], (tw.coord(part, 1) + v * W).to(f32), HIGHEST), axis=1))
    tw.store(S[m], place.to(i64))


@tw.kernel(of_rows, threads=tw.max(128, BYTES // 64), blocks_per_sm=FULL // tw.max(128, BYTES // 64))
def short(X, S, F, T, BYTES: tw.each(512, 1024, 2048, 4096, 8192, 16384, 32768), FULL: tw.const(1024, 1280, 1536, 2048) = 1280):
    """Rows of up to BYTES bytes of whole vectors in registers."""
    BM, BN = tw.max(1, 8192 // BYTES), BYTES // T.bytes
    tw.assume(N <= BN)
    tw.assume(N % (16 // T.bytes) == 0)
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], fill=F.start, hint="streaming")
    tw.store(S[m], F.first(x, axis=1, limit=N).to(i64))


@tw.kernel(of_rows, threads=THREADS, blocks_per_sm=1536 // THREADS)
def long(X, S, F, T, THREADS: tw.const(256, 512) = 512, D: tw.const(4, 6, 8) = 4):
    """Longer rows of whole vectors, by one block each. Each warp carries the best value of its part of every chunk and that value's first place. A chunk costs it one comparison an element; only where an element is
    as good as the best so far, about ln(N) times a row, are value and place worked out. Whole chunks are copied D - 1 ahead, every thread reads what it copied; what is
    left of the row waits in registers."""
    tw.assume(N <= 16777216)
    tw.assume(N % (16 // T.bytes) == 0)
    W = 16 // T.bytes
    BN = THREADS * W
    rounds = N // BN
    m = tw.grid(M)
    s = tw.shared(T, (D, BN))
    parts = tw.overlay(s, T, (D, THREADS // 32, 32 * W))
    for c in tw.unroll(D - 1):
        tw.cp_async(s[c], X[m, c * BN : c * BN + BN])
        tw.cp_async_commit()
    rest = tw.load(X[m, rounds * BN : rounds * BN + BN], fill=F.start).to(f32)
    best = tw.full(f32, (THREADS // 32,), F.start)
    place = tw.full(f32, (THREADS // 32,), HIGHEST)
    for c in tw.range(rounds):
        ahead = c + D - 1
        tw.cp_async(s[ahead % D], X[m, ahead * BN : ahead * BN + BN])
        tw.cp_async_commit()
        tw.cp_async_wait(D - 1)
        x = tw.load(parts[c % D], layout=tw.warp_rows(vector=W)).to(f32)
        if tw.any(F.as_good(x, best[:, None])):
            new_best = F.join(best, F.best(x, axis=1))
            n = tw.coord(x, 0) * (32 * W) + tw.coord(x, 1) + c * BN
            here = tw.min(tw.where(x == new_best[:, None], n.to(f32), HIGHEST), axis=1)
            place = tw.minimum(tw.where(best == new_best, place, HIGHEST), here)
            best = new_best
    tw.cp_async_wait(0)
    whole = F.join(F.best(best, axis=0), F.best(rest, axis=0))
    of_chunks = tw.min(tw.where(best == whole, place, HIGHEST), axis=0)
    tw.store(S[m], tw.minimum(of_chunks, place_in(rest, whole, rounds * BN, N)).to(i64))


@tw.kernel(of_rows, threads=32, blocks_per_sm=32)
def two(X, S, F, T: tw.each(bf16)):
    """Rows of any length and pitch, up to 2 KB in the registers of a warp, two of them."""
    rows_and_edges(X, S, F, T, 1024, 2)


@tw.kernel(of_rows, threads=BYTES // (128 if BYTES > 20480 else 64), blocks_per_sm=tw.min(32, (1024 if BYTES > 20480 else 1536) // (BYTES // (128 if BYTES > 20480 else 64))))
def edges(X, S, F, T, BYTES: tw.each(2048, 4096, 6144, 8192, 12288, 16384, 20480, 32768)):
    """Rows of any length and pitch, up to BYTES bytes in registers."""
    rows_and_edges(X, S, F, T, BYTES // T.bytes, 1)


@tw.kernel(of_rows, threads=512, blocks_per_sm=3)
def any_length(X, S, F, T):
    """Rows of any length and pitch: read for the best value, and again for its place."""
    BN = 4096
    tw.assume(N <= 16777216)
    m = tw.grid(M)
    bests = tw.full(f32, (BN,), F.start)
    for c in tw.range(tw.cdiv(N, BN), unroll=2):
        bests = F.join(bests, tw.load(X[m, c * BN : c * BN + BN], fill=F.start).to(f32))
    best = F.best(bests, axis=0)
    places = tw.full(f32, (BN,), HIGHEST)
    for c in tw.range(tw.cdiv(N, BN), unroll=2):
        x = tw.load(X[m, c * BN : c * BN + BN], fill=F.start).to(f32)
        places = tw.minimum(places, tw.where(tw.coord(x, 0) < N - c * BN, tw.where(x == best, (tw.coord(x, 0) + c * BN).to(f32), HIGHEST), HIGHEST))
    tw.store(S[m], tw.min(places, axis=0).to(i64))
