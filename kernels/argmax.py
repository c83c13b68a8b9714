"""The position of the largest or the smallest element of each row (the first one, where several are equal; NaN never wins). Every row is read once."""
import tilewright as tw
from tilewright import bf16, f32, i64

M, N = tw.sizes("M N")
LOWEST = float("-inf")
HIGHEST = float("inf")
T, BYTES, FULL, THREADS = tw.parameters("T BYTES FULL THREADS")

@tw.inline
def larger(x, y):
    return tw.maximum(x, y)


@tw.inline
def smaller(x, y):
    return tw.minimum(x, y)


@tw.inline
def no_smaller(x, y):
    return x >= y


@tw.inline
def no_larger(x, y):
    return x <= y


@tw.inline
def top(x, axis):
    return tw.max(x, axis=axis)


@tw.inline
def bottom(x, axis):
    return tw.min(x, axis=axis)


@tw.inline
def first_max(x):
    return tw.argmax(x, axis=1, limit=N)


@tw.inline
def first_min(x):
    return tw.argmin(x, axis=1, limit=N)


@tw.inline
def place_in(x, best, n, end):
    """The first place of the part from n to end that has the best value of the row. Folded in f32, which is exact up to 2^24."""
    return tw.min(tw.where((x == best) & (tw.coord(x, 0) < end - n), tw.coord(x, 0).to(f32) + n, HIGHEST), axis=0)


@tw.inline
def short_rows(X, S, first, start, BM, BN):
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], fill=start, hint="streaming")
    tw.store(S[m], first(x).to(i64))


@tw.inline
def rows_of_warps(X, S, extreme, T, BM, BN):
    """Each warp has a whole row of exactly BN elements. It looks for the place only in windows, of a vector a lane, that have the row's best value."""
    W = 32 * (16 // T.bytes)
    tw.assume(N == BN)
    tw.assume(M % BM == 0)
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], hint="streaming", layout=tw.warp_rows(vector=16 // T.bytes)).to(f32)
    best = extreme(x, 1)
    place = tw.full(f32, (BM,), HIGHEST)
    for v in tw.unroll(BN // W):
        part = x[:, v * W : v * W + W]
        if tw.any(part == best[:, None]):
            place = tw.minimum(place, tw.min(tw.where(part == best[:, None], (tw.coord(part, 1) + v * W).to(f32), HIGHEST), axis=1))
    tw.store(S[m], place.to(i64))


@tw.inline
def parts_of(X, m, start, T, BN):
    """A row of any pitch: the whole vectors that lie in it, and less than a vector before and behind them, one element a lane; where the vectors begin and end."""
    V = 16 // T.bytes
    first = (V - m % V * (N % V) % V) % V
    end = first + (N - first) // V * V
    x = tw.load(X[m, first : first + BN], fill=start, hint="streaming", limit=(end,))
    head = tw.load(X[m, 0:V], fill=start, limit=(first,))
    tail = tw.load(X[m, end : end + V], fill=start)
    return x, head, tail, first, end


@tw.inline
def place_of(parts, combine, extreme):
    x, head, tail, first, end = parts
    best = combine(extreme(x, 0), combine(extreme(head, 0), extreme(tail, 0)))
    edges = tw.minimum(place_in(head, best, 0, first), place_in(tail, best, end, N))
    return tw.minimum(place_in(x, best, first, end), edges).to(i64)


@tw.inline
def rows_and_edges(X, S, combine, extreme, start, T, BN, ROWS):
    """One row a block; or two, both of which are on their way before the first is looked at: a GPU does not start blocks of 2 KB as fast as memory brings their rows."""
    tw.assume(N >= 16 // T.bytes)
    tw.assume(N <= BN)
    if ROWS == 1:
        m = tw.grid(M)
        tw.store(S[m], place_of(parts_of(X, m, start, T, BN), combine, extreme))
    else:
        tw.assume(M % 2 == 0)
        m = tw.grid(M // 2) * 2
        one = parts_of(X, m, start, T, BN)
        other = parts_of(X, m + 1, start, T, BN)
        tw.store(S[m], place_of(one, combine, extreme))
        tw.store(S[m + 1], place_of(other, combine, extreme))


@tw.inline
def long_row(X, S, combine, extreme, as_good, start, T, THREADS, D):
    """Each warp carries the best value of its part of every chunk and that value's first place. A chunk costs it one comparison an element; only where an element is
    as good as the best so far, about ln(N) times a row, are value and place worked out. Whole chunks are copied D - 1 ahead, every thread reads what it copied; what is
    left of the row waits in registers."""
    W = 16 // T.bytes
    BN = THREADS * W
    rounds = N // BN
    m = tw.grid(M)
    s = tw.shared(T, (D, BN))
    parts = tw.overlay(s, T, (D, THREADS // 32, 32 * W))
    for c in tw.unroll(D - 1):
        tw.cp_async(s[c], X[m, c * BN : c * BN + BN])
        tw.cp_async_commit()
    rest = tw.load(X[m, rounds * BN : rounds * BN + BN], fill=start).to(f32)
    best = tw.full(f32, (THREADS // 32,), start)
    place = tw.full(f32, (THREADS // 32,), HIGHEST)
    for c in tw.range(rounds):
        ahead = c + D - 1
        tw.cp_async(s[ahead % D], X[m, ahead * BN : ahead * BN + BN])
        tw.cp_async_commit()
        tw.cp_async_wait(D - 1)
        x = tw.load(parts[c % D], layout=tw.warp_rows(vector=W)).to(f32)
        if tw.any(as_good(x, best[:, None])):
            new_best = combine(best, extreme(x, 1))
            n = tw.coord(x, 0) * (32 * W) + tw.coord(x, 1) + c * BN
            here = tw.min(tw.where(x == new_best[:, None], n.to(f32), HIGHEST), axis=1)
            place = tw.minimum(tw.where(best == new_best, place, HIGHEST), here)
            best = new_best
    tw.cp_async_wait(0)
    whole = combine(extreme(best, 0), extreme(rest, 0))
    of_chunks = tw.min(tw.where(best == whole, place, HIGHEST), axis=0)
    tw.store(S[m], tw.minimum(of_chunks, place_in(rest, whole, rounds * BN, N)).to(i64))


@tw.inline
def row_twice(X, S, combine, extreme, start, BN):
    """Rows of any length and pitch: read for the best value, and again for its place."""
    m = tw.grid(M)
    bests = tw.full(f32, (BN,), start)
    for c in tw.range(tw.cdiv(N, BN), unroll=2):
        bests = combine(bests, tw.load(X[m, c * BN : c * BN + BN], fill=start).to(f32))
    best = extreme(bests, 0)
    places = tw.full(f32, (BN,), HIGHEST)
    for c in tw.range(tw.cdiv(N, BN), unroll=2):
        x = tw.load(X[m, c * BN : c * BN + BN], fill=start).to(f32)
        places = tw.minimum(places, tw.where(tw.coord(x, 0) < N - c * BN, tw.where(x == best, (tw.coord(x, 0) + c * BN).to(f32), HIGHEST), HIGHEST))
    tw.store(S[m], tw.min(places, axis=0).to(i64))


@tw.kernel(target="sm_80", name="row_argmax", computes="S[m] = argmax(n, f32(X[m, n]))", threads=128, blocks_per_sm=8)
def row_argmax_warps(X: tw.Tensor(T, M, N), S: tw.Tensor(i64, M), T: tw.each(bf16)):
    """Rows of 1024 elements of 16 bits, one a warp."""
    rows_of_warps(X, S, top, T, 4, 1024)


@tw.kernel(target="sm_80", name="row_argmax", computes="S[m] = argmax(n, f32(X[m, n]))", threads=tw.max(128, BYTES // 64), blocks_per_sm=FULL // tw.max(128, BYTES // 64))
def row_argmax_short(X: tw.Tensor(T, M, N), S: tw.Tensor(i64, M), T: tw.each(bf16, f32), BYTES: tw.each(512, 1024, 2048, 4096, 8192, 16384, 32768), FULL: tw.const(1024, 1280, 1536, 2048) = 1280):
    """Rows of up to BYTES bytes of whole vectors in registers."""
    tw.assume(N <= BYTES // T.bytes)
    tw.assume(N % (16 // T.bytes) == 0)
    short_rows(X, S, first_max, LOWEST, tw.max(1, 8192 // BYTES), BYTES // T.bytes)


@tw.kernel(target="sm_80", name="row_argmax", computes="S[m] = argmax(n, f32(X[m, n]))", threads=THREADS, blocks_per_sm=1536 // THREADS)
def row_argmax_long(X: tw.Tensor(T, M, N), S: tw.Tensor(i64, M), T: tw.each(bf16, f32), THREADS: tw.const(256, 512) = 512, D: tw.const(4, 6, 8) = 4):
    """Longer rows of whole vectors, by one block each."""
    tw.assume(N <= 16777216)
    tw.assume(N % (16 // T.bytes) == 0)
    long_row(X, S, larger, top, no_smaller, LOWEST, T, THREADS, D)


@tw.kernel(target="sm_80", name="row_argmax", computes="S[m] = argmax(n, f32(X[m, n]))", threads=32, blocks_per_sm=32)
def row_argmax_two(X: tw.Tensor(T, M, N), S: tw.Tensor(i64, M), T: tw.each(bf16)):
    """Rows of any length and pitch, up to 2 KB in the registers of a warp, two of them."""
    rows_and_edges(X, S, larger, top, LOWEST, T, 1024, 2)


@tw.kernel(target="sm_80", name="row_argmax", computes="S[m] = argmax(n, f32(X[m, n]))", threads=BYTES // (128 if BYTES > 20480 else 64), blocks_per_sm=tw.min(32, (1024 if BYTES > 20480 else 1536) // (BYTES // (128 if BYTES > 20480 else 64))))
def row_argmax_edges(X: tw.Tensor(T, M, N), S: tw.Tensor(i64, M), T: tw.each(bf16, f32), BYTES: tw.each(2048, 4096, 6144, 8192, 12288, 16384, 20480, 32768)):
    """Rows of any length and pitch, up to BYTES bytes in registers."""
    rows_and_edges(X, S, larger, top, LOWEST, T, BYTES // T.bytes, 1)


@tw.kernel(target="sm_80", name="row_argmax", computes="S[m] = argmax(n, f32(X[m, n]))", threads=512, blocks_per_sm=3)
def row_argmax_any(X: tw.Tensor(T, M, N), S: tw.Tensor(i64, M), T: tw.each(bf16, f32)):
    """Rows of any length and pitch, read twice."""
    tw.assume(N <= 16777216)
    row_twice(X, S, larger, top, LOWEST, 4096)


@tw.kernel(target="sm_80", name="row_argmin", computes="S[m] = argmin(n, f32(X[m, n]))", threads=128, blocks_per_sm=8)
def row_argmin_warps(X: tw.Tensor(T, M, N), S: tw.Tensor(i64, M), T: tw.each(bf16)):
    """Rows of 1024 elements of 16 bits, one a warp."""
    rows_of_warps(X, S, bottom, T, 4, 1024)


@tw.kernel(target="sm_80", name="row_argmin", computes="S[m] = argmin(n, f32(X[m, n]))", threads=tw.max(128, BYTES // 64), blocks_per_sm=FULL // tw.max(128, BYTES // 64))
def row_argmin_short(X: tw.Tensor(T, M, N), S: tw.Tensor(i64, M), T: tw.each(bf16, f32), BYTES: tw.each(512, 1024, 2048, 4096, 8192, 16384, 32768), FULL: tw.const(1024, 1280, 1536, 2048) = 1280):
    """Rows of up to BYTES bytes of whole vectors in registers."""
    tw.assume(N <= BYTES // T.bytes)
    tw.assume(N % (16 // T.bytes) == 0)
    short_rows(X, S, first_min, HIGHEST, tw.max(1, 8192 // BYTES), BYTES // T.bytes)


@tw.kernel(target="sm_80", name="row_argmin", computes="S[m] = argmin(n, f32(X[m, n]))", threads=THREADS, blocks_per_sm=1536 // THREADS)
def row_argmin_long(X: tw.Tensor(T, M, N), S: tw.Tensor(i64, M), T: tw.each(bf16, f32), THREADS: tw.const(256, 512) = 512, D: tw.const(4, 6, 8) = 4):
    """Longer rows of whole vectors, by one block each."""
    tw.assume(N <= 16777216)
    tw.assume(N % (16 // T.bytes) == 0)
    long_row(X, S, smaller, bottom, no_larger, HIGHEST, T, THREADS, D)


@tw.kernel(target="sm_80", name="row_argmin", computes="S[m] = argmin(n, f32(X[m, n]))", threads=32, blocks_per_sm=32)
def row_argmin_two(X: tw.Tensor(T, M, N), S: tw.Tensor(i64, M), T: tw.each(bf16)):
    """Rows of any length and pitch, up to 2 KB in the registers of a warp, two of them."""
    rows_and_edges(X, S, smaller, bottom, HIGHEST, T, 1024, 2)


@tw.kernel(target="sm_80", name="row_argmin", computes="S[m] = argmin(n, f32(X[m, n]))", threads=BYTES // (128 if BYTES > 20480 else 64), blocks_per_sm=tw.min(32, (1024 if BYTES > 20480 else 1536) // (BYTES // (128 if BYTES > 20480 else 64))))
def row_argmin_edges(X: tw.Tensor(T, M, N), S: tw.Tensor(i64, M), T: tw.each(bf16, f32), BYTES: tw.each(2048, 4096, 6144, 8192, 12288, 16384, 20480, 32768)):
    """Rows of any length and pitch, up to BYTES bytes in registers."""
    rows_and_edges(X, S, smaller, bottom, HIGHEST, T, BYTES // T.bytes, 1)


@tw.kernel(target="sm_80", name="row_argmin", computes="S[m] = argmin(n, f32(X[m, n]))", threads=512, blocks_per_sm=3)
def row_argmin_any(X: tw.Tensor(T, M, N), S: tw.Tensor(i64, M), T: tw.each(bf16, f32)):
    """Rows of any length and pitch, read twice."""
    tw.assume(N <= 16777216)
    row_twice(X, S, smaller, bottom, HIGHEST, 4096)
