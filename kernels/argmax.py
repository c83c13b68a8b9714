"""The position of the largest or the smallest element of each row (the first one, where several are equal; NaN never wins)."""
import tilewright as tw
from tilewright import bf16, f32, i64

M, N = tw.sizes("M N")
LOWEST = float("-inf")
HIGHEST = float("inf")


@tw.inline
def first_max(x):
    return tw.argmax(x, axis=1, limit=N)


@tw.inline
def first_min(x):
    return tw.argmin(x, axis=1, limit=N)


@tw.inline
def larger(x, y):
    return tw.maximum(x, y)


@tw.inline
def smaller(x, y):
    return tw.minimum(x, y)


@tw.inline
def top(x):
    return tw.max(x, axis=0)


@tw.inline
def bottom(x):
    return tw.min(x, axis=0)


@tw.inline
def short_rows(X, S, first, start, BM, BN):
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], fill=start, hint="streaming").to(f32)
    tw.store(S[m], first(x).to(i64))


@tw.inline
def across(state, combine, start, C):
    tw.cluster_sync()
    whole = tw.full(f32, (), start)
    for r in tw.range(C, unroll=True):
        whole = combine(whole, tw.load(state, rank=r))
    return whole


@tw.inline
def own_part(C, WIDTH):
    """The block's rank in its cluster, its row, and where its part of the row begins."""
    if C == 1:
        rank = 0
        m = tw.grid(M)
    else:
        rank, m = tw.grid(C, M)
    return rank, m, rank * WIDTH


@tw.inline
def staged(X, s, m, n, K, BN):
    """This block's part of the row, K chunks of BN elements from n on, into shared memory; outside the row it is zero. Every thread reads what it
    copied, so nobody waits for anybody."""
    for k in tw.range(K):
        tw.cp_async(s[k], X[m, n + k * BN : n + k * BN + BN])
    tw.cp_async_commit()
    tw.cp_async_wait(0)


@tw.inline
def inside(x, n, outside):
    return tw.where(tw.coord(x, 0) < N - n, x, outside)


@tw.inline
def row_in_shared(X, S, combine, reduced, start, T, C, K, BN):
    """A row in the shared memory of a cluster: the extreme value first, then the first place that has it. Positions are folded in f32, which
    is exact up to 2^24."""
    tw.assume(N <= 16777216)
    rank, m, n0 = own_part(C, K * BN)
    s = tw.shared(T, (K, BN))
    state = tw.shared(f32, (2,))
    staged(X, s, m, n0, K, BN)
    extremes = tw.full(f32, (BN,), start)
    for k in tw.range(K, unroll=2):
        extremes = combine(extremes, inside(tw.load(s[k]).to(f32), n0 + k * BN, start))
    tw.store(state[0], reduced(extremes))
    best = across(state[0], combine, start, C)
    places = tw.full(f32, (BN,), HIGHEST)
    for k in tw.range(K, unroll=2):
        n = n0 + k * BN
        x = tw.load(s[k]).to(f32)
        places = tw.minimum(places, inside(tw.where(x == best, (tw.coord(x, 0) + n).to(f32), HIGHEST), n, HIGHEST))
    tw.store(state[1], tw.min(places, axis=0))
    first = across(state[1], smaller, HIGHEST, C)
    if rank == 0:
        tw.store(S[m], first.to(i64))


@tw.inline
def row_twice(X, S, combine, reduced, start, C, BN):
    """Longer rows: read for the extreme value, and again for its place."""
    tw.assume(N <= 16777216)
    rank, m = tw.grid(C, M)
    state = tw.shared(f32, (2,))
    rounds = tw.cdiv(N, BN * C)
    extremes = tw.full(f32, (BN,), start)
    for c in tw.range(rounds, unroll=2):
        n = rank * rounds * BN + c * BN
        extremes = combine(extremes, tw.load(X[m, n : n + BN], fill=start).to(f32))
    tw.store(state[0], reduced(extremes))
    best = across(state[0], combine, start, C)
    places = tw.full(f32, (BN,), HIGHEST)
    for c in tw.range(rounds, unroll=2):
        n = rank * rounds * BN + c * BN
        x = tw.load(X[m, n : n + BN], fill=start).to(f32)
        places = tw.minimum(places, tw.where(tw.coord(x, 0) < N - n, tw.where(x == best, (tw.coord(x, 0) + n).to(f32), HIGHEST), HIGHEST))
    tw.store(state[1], tw.min(places, axis=0))
    first = across(state[1], smaller, HIGHEST, C)
    if rank == 0:
        tw.store(S[m], first.to(i64))


@tw.kernel(target="sm_80", name="row_argmax", computes="S[m] = argmax(n, f32(X[m, n]))", threads=tw.max(128, BYTES // 64), blocks_per_sm=FULL // tw.max(128, BYTES // 64))
def row_argmax_short(X: tw.Tensor(T, M, N), S: tw.Tensor(i64, M), T: tw.each(bf16, f32), BYTES: tw.each(512, 1024, 2048, 4096, 8192, 16384, 32768), FULL: tw.const(1024, 1280, 1536, 2048) = 1280):
    """Rows of up to BYTES bytes of whole vectors in registers."""
    tw.assume(N <= BYTES // T.bytes)
    tw.assume(N % (16 // T.bytes) == 0)
    short_rows(X, S, first_max, LOWEST, tw.max(1, 8192 // BYTES), BYTES // T.bytes)


@tw.kernel(
    target="sm_90a",
    name="row_argmax",
    computes="S[m] = argmax(n, f32(X[m, n]))",
    threads=256 if ROW <= 851968 else 512,
    cluster=(tw.min(8, ROW // 65536), 1, 1),
    blocks_per_sm=221184 // (ROW // tw.min(8, ROW // 65536)),
)
def row_argmax_staged(X: tw.Tensor(T, M, N), S: tw.Tensor(i64, M), T: tw.each(bf16, f32), ROW: tw.each(65536, 131072, 262144, 524288, 851968, 1638400)):
    """Rows of up to ROW bytes in the shared memory of one block or of a cluster."""
    C = tw.min(8, ROW // 65536)
    CHUNK = 4096 if ROW <= 851968 else 8192
    tw.assume(N <= ROW // T.bytes)
    tw.assume(N % (16 // T.bytes) == 0)
    row_in_shared(X, S, larger, top, LOWEST, T, C, ROW // C // CHUNK, CHUNK // T.bytes)


@tw.kernel(target="sm_90a", name="row_argmax", computes="S[m] = argmax(n, f32(X[m, n]))", threads=512, cluster=(C, 1, 1))
def row_argmax_twice(X: tw.Tensor(T, M, N), S: tw.Tensor(i64, M), T: tw.each(bf16, f32), C: tw.const(2, 4, 8) = 2):
    """Longer rows of whole vectors, read twice."""
    tw.assume(N % (16 // T.bytes) == 0)
    row_twice(X, S, larger, top, LOWEST, C, 16384 // T.bytes)


@tw.kernel(target="sm_80", name="row_argmax", computes="S[m] = argmax(n, f32(X[m, n]))", threads=tw.max(128, BN // 32))
def row_argmax_short_any(X: tw.Tensor(T, M, N), S: tw.Tensor(i64, M), T: tw.each(bf16, f32), BN: tw.each(256, 1024, 4096, 8192)):
    """Rows of any length up to BN, one element a lane."""
    tw.assume(N <= BN)
    short_rows(X, S, first_max, LOWEST, tw.max(1, 2048 // BN), BN)


@tw.kernel(target="sm_90a", name="row_argmax", computes="S[m] = argmax(n, f32(X[m, n]))", threads=512, cluster=(C, 1, 1))
def row_argmax_twice_any(X: tw.Tensor(T, M, N), S: tw.Tensor(i64, M), T: tw.each(bf16, f32), C: tw.const(2, 4, 8) = 2):
    """Longer rows of any length, read twice."""
    row_twice(X, S, larger, top, LOWEST, C, 4096)


@tw.kernel(target="sm_80", name="row_argmin", computes="S[m] = argmin(n, f32(X[m, n]))", threads=tw.max(128, BYTES // 64), blocks_per_sm=FULL // tw.max(128, BYTES // 64))
def row_argmin_short(X: tw.Tensor(T, M, N), S: tw.Tensor(i64, M), T: tw.each(bf16, f32), BYTES: tw.each(512, 1024, 2048, 4096, 8192, 16384, 32768), FULL: tw.const(1024, 1280, 1536, 2048) = 1280):
    """Rows of up to BYTES bytes of whole vectors in registers."""
    tw.assume(N <= BYTES // T.bytes)
    tw.assume(N % (16 // T.bytes) == 0)
    short_rows(X, S, first_min, HIGHEST, tw.max(1, 8192 // BYTES), BYTES // T.bytes)


@tw.kernel(
    target="sm_90a",
    name="row_argmin",
    computes="S[m] = argmin(n, f32(X[m, n]))",
    threads=256 if ROW <= 851968 else 512,
    cluster=(tw.min(8, ROW // 65536), 1, 1),
    blocks_per_sm=221184 // (ROW // tw.min(8, ROW // 65536)),
)
def row_argmin_staged(X: tw.Tensor(T, M, N), S: tw.Tensor(i64, M), T: tw.each(bf16, f32), ROW: tw.each(65536, 131072, 262144, 524288, 851968, 1638400)):
    """Rows of up to ROW bytes in the shared memory of one block or of a cluster."""
    C = tw.min(8, ROW // 65536)
    CHUNK = 4096 if ROW <= 851968 else 8192
    tw.assume(N <= ROW // T.bytes)
    tw.assume(N % (16 // T.bytes) == 0)
    row_in_shared(X, S, smaller, bottom, HIGHEST, T, C, ROW // C // CHUNK, CHUNK // T.bytes)


@tw.kernel(target="sm_90a", name="row_argmin", computes="S[m] = argmin(n, f32(X[m, n]))", threads=512, cluster=(C, 1, 1))
def row_argmin_any(X: tw.Tensor(T, M, N), S: tw.Tensor(i64, M), T: tw.each(bf16, f32), C: tw.const(2, 4, 8) = 2):
    """Rows of any length, read twice."""
    row_twice(X, S, smaller, bottom, HIGHEST, C, 4096)
