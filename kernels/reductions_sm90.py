"""Sums, means, maxima and minima over the rows, and over any other axis, of a tensor: every element is read once, in address order."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")          # rows: X[M, N] over N
A, R, B = tw.sizes("A R B")     # any other axis: X[A, R, B] over R
LOWEST = float("-inf")
HIGHEST = float("inf")
BYTES, T, C, COLUMNS, G = tw.parameters("BYTES T C COLUMNS G")

@tw.inline
def plus(x, y):
    return x + y


@tw.inline
def larger(x, y):
    return tw.maximum(x, y)


@tw.inline
def smaller(x, y):
    return tw.minimum(x, y)


@tw.inline
def total(x, axis):
    return tw.sum(x, axis=axis)


@tw.inline
def top(x, axis):
    return tw.max(x, axis=axis)


@tw.inline
def bottom(x, axis):
    return tw.min(x, axis=axis)


@tw.inline
def short_rows(X, reduced, start, BM, BN):
    """Rows of up to BN elements: first row of the block, and the reduced values of its rows."""
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], fill=start, hint="streaming").to(f32)
    return m, reduced(x, 1)


@tw.inline
def parts_of(X, m, start, T, F, BN):
    """A row of any pitch, to be folded in F: the whole vectors that lie in it, and less than a vector before and behind them, one element a lane."""
    V = 16 // T.bytes
    first = (V - m % V * (N % V) % V) % V
    end = first + (N - first) // V * V
    x = tw.load(X[m, first : first + BN], fill=start, hint="streaming", limit=(end,)).to(F)
    return x, tw.load(X[m, 0:V], fill=start, limit=(first,)).to(F), tw.load(X[m, end : end + V], fill=start).to(F)


@tw.inline
def folded(parts, combine, reduced):
    x, head, tail = parts
    return combine(reduced(x, 0), combine(reduced(head, 0), reduced(tail, 0)))


@tw.inline
def row_and_edges(X, combine, reduced, start, T, F, BN):
    tw.assume(N >= 16 // T.bytes)
    tw.assume(N <= BN)
    m = tw.grid(M)
    return m, folded(parts_of(X, m, start, T, F, BN), combine, reduced)


@tw.inline
def two_rows(X, combine, reduced, start, T, F, BN):
    """Two rows a block, both on their way before the first is folded: a GPU does not start blocks of 2 KB as fast as memory brings their rows."""
    tw.assume(N >= 16 // T.bytes)
    tw.assume(N <= BN)
    tw.assume(M % 2 == 0)
    m = tw.grid(M // 2) * 2
    one = parts_of(X, m, start, T, F, BN)
    other = parts_of(X, m + 1, start, T, F, BN)
    return m, folded(one, combine, reduced), folded(other, combine, reduced)


@tw.inline
def long_row(X, combine, reduced, start, C, BN, U):
    """A row by one block, or over those of a cluster; each lane folds its part of every chunk, and everybody meets once at the end."""
    if C == 1:
        rank = 0
        m = tw.grid(M)
    else:
        rank, m = tw.grid(C, M)
    state = tw.shared(f32, (1,))
    rounds = tw.cdiv(N, BN * C)
    partial = tw.full(f32, (BN,), start)
    for c in tw.range(rounds, unroll=U):
        n = rank * rounds * BN + c * BN
        partial = combine(partial, tw.load(X[m, n : n + BN], fill=start, hint="streaming").to(f32))
    tw.store(state[0], reduced(partial, 0))
    tw.cluster_sync()
    whole = tw.full(f32, (), start)
    for r in tw.range(C, unroll=True):
        whole = combine(whole, tw.load(state[0], rank=r))
    return rank, m, whole


@tw.inline
def other_axis(X, combine, reduced, start, G, U, BR, BB):
    """Columns of the axis: a block folds BR rows of BB neighbouring elements at a time; a cluster of G blocks shares the axis."""
    rank, bb, a = tw.grid(G, tw.cdiv(B, BB), A)
    state = tw.shared(f32, (BB,))
    b = bb * BB
    rounds = tw.cdiv(R, BR * G)
    partial = tw.full(f32, (BR, BB), start)
    for c in tw.range(rounds, unroll=U):
        r = rank * rounds * BR + c * BR
        partial = combine(partial, tw.load(X[a, r : r + BR, b : b + BB], fill=start, hint="streaming").to(f32))
    tw.store(state, reduced(partial, 0))
    tw.cluster_sync()
    whole = tw.full(f32, (BB,), start)
    for g in tw.range(G, unroll=True):
        whole = combine(whole, tw.load(state, rank=g))
    return rank, a, b, whole


@tw.inline
def vector_axis(X, combine, reduced, start, T, COLUMNS):
    """Rows of whole vectors. What a block takes of a row follows from how many columns there are to fill the GPU with: few (COLUMNS = 1):
    sectors, not lines, over clusters of large blocks; many (COLUMNS = 3): no clusters at all."""
    tw.assume(B % (16 // T.bytes) == 0)
    if COLUMNS == 1:
        tw.assume(A * B <= 512)
        rank, a, b, s = other_axis(X, combine, reduced, start, 8, 4, 1024 // T.bytes, 16)
    elif COLUMNS == 2:
        tw.assume(A * B * T.bytes < 131072)
        rank, a, b, s = other_axis(X, combine, reduced, start, 8, 16 if T == bf16 else 4, 16, 32 * T.bytes)
    else:
        rank, a, b, s = other_axis(X, combine, reduced, start, 1, 4, 8, 512 // T.bytes)
    return rank, a, b, s


@tw.kernel(target="sm_80", name="row_sum", computes="S[m] = sum(n, f32(X[m, n]))", threads=tw.min(512, tw.max(128, BYTES // 64)))
def row_sum_short(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32), BYTES: tw.each(512, 2048, 8192, 32768)):
    """Sums of rows of up to BYTES bytes of whole vectors, one row a block or several, four vectors a thread."""
    BN = BYTES // T.bytes
    tw.assume(N <= BN)
    tw.assume(N % (16 // T.bytes) == 0)
    m, s = short_rows(X, total, 0.0, tw.max(1, 8192 // BYTES), BN)
    tw.store(S[m], s.to(S.dtype))


@tw.kernel(target="sm_90a", name="row_sum", computes="S[m] = sum(n, f32(X[m, n]))", threads=512, cluster=(C, 1, 1), blocks_per_sm=3)
def row_sum_long(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32), C: tw.each(1, 4)):
    """Sums of rows of any length of whole vectors; few rows are spread over clusters."""
    tw.assume(N % (16 // T.bytes) == 0)
    if C == 1:
        tw.assume(M >= 256)
    rank, m, s = long_row(X, plus, total, 0.0, C, 8192 // T.bytes, 4)
    if rank == 0:
        tw.store(S[m], s.to(S.dtype))


@tw.kernel(target="sm_80", name="row_sum", computes="S[m] = sum(n, f32(X[m, n]))", threads=128)
def row_sum_short_any(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32)):
    """Sums of rows of any length up to 256, one element a lane."""
    tw.assume(N <= 256)
    m, s = short_rows(X, total, 0.0, 8, 256)
    tw.store(S[m], s.to(S.dtype))


@tw.kernel(target="sm_80", name="row_sum", computes="S[m] = sum(n, f32(X[m, n]))", threads=32, blocks_per_sm=32)
def row_sum_two(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16)):
    """Sums of rows of any length and pitch, up to 2 KB in the registers of a warp, two of them."""
    m, s, t = two_rows(X, plus, total, 0.0, T, f32, 1024)
    tw.store(S[m], s.to(S.dtype))
    tw.store(S[m + 1], t.to(S.dtype))


@tw.kernel(target="sm_80", name="row_sum", computes="S[m] = sum(n, f32(X[m, n]))", threads=BYTES // 64, blocks_per_sm=tw.min(32, 1536 // (BYTES // 64)))
def row_sum_edges(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32), BYTES: tw.each(2048, 4096, 8192, 16384, 32768)):
    """Sums of rows of any length and pitch, up to BYTES bytes in registers."""
    m, s = row_and_edges(X, plus, total, 0.0, T, f32, BYTES // T.bytes)
    tw.store(S[m], s.to(S.dtype))


@tw.kernel(target="sm_90a", name="row_sum", computes="S[m] = sum(n, f32(X[m, n]))", threads=512, cluster=(C, 1, 1))
def row_sum_long_any(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32), C: tw.const(2, 4, 8) = 2, V: tw.const(4, 8) = 8):
    """Sums of rows of any length, over the blocks of a cluster, one element a lane."""
    rank, m, s = long_row(X, plus, total, 0.0, C, 512 * V, 2)
    if rank == 0:
        tw.store(S[m], s.to(S.dtype))


@tw.kernel(
    target="sm_90a", name="axis_sum", computes="S[a, b] = sum(r, f32(X[a, r, b]))", threads=1024 if COLUMNS == 1 else 128 if COLUMNS == 2 and T == bf16 else 256, cluster=(1 if COLUMNS == 3 else 8, 1, 1), blocks_per_sm=2 if COLUMNS == 1 else 8 if COLUMNS == 2 and T == bf16 else 4
)
def axis_sum_aligned(X: tw.Tensor(T, A, R, B), S: tw.Tensor(T, A, B), T: tw.each(bf16, f32), COLUMNS: tw.each(1, 2, 3)):
    """The sum over the middle axis, rows of whole vectors."""
    rank, a, b, s = vector_axis(X, plus, total, 0.0, T, COLUMNS)
    if rank == 0:
        tw.store(S[a, b : b + (16 if COLUMNS == 1 else 32 * T.bytes if COLUMNS == 2 else 512 // T.bytes)], s.to(S.dtype))


@tw.kernel(target="sm_90a", name="axis_sum", computes="S[a, b] = sum(r, f32(X[a, r, b]))", threads=256, cluster=(G, 1, 1))
def axis_sum_any(X: tw.Tensor(T, A, R, B), S: tw.Tensor(T, A, B), T: tw.each(bf16, f32), G: tw.const(1, 2, 4, 8) = 8, BR: tw.const(8, 16, 32) = 16):
    """The sum over the middle axis, rows of any length: one element a lane."""
    rank, a, b, s = other_axis(X, plus, total, 0.0, G, 4, BR, 64)
    if rank == 0:
        tw.store(S[a, b : b + 64], s.to(S.dtype))


@tw.kernel(target="sm_80", name="row_mean", computes="S[m] = mean(n, f32(X[m, n]))", threads=tw.min(512, tw.max(128, BYTES // 64)))
def row_mean_short(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32), BYTES: tw.each(512, 2048, 8192, 32768)):
    """Means of rows of up to BYTES bytes of whole vectors, one row a block or several, four vectors a thread."""
    BN = BYTES // T.bytes
    tw.assume(N <= BN)
    tw.assume(N % (16 // T.bytes) == 0)
    m, s = short_rows(X, total, 0.0, tw.max(1, 8192 // BYTES), BN)
    tw.store(S[m], (s / N).to(S.dtype))


@tw.kernel(target="sm_90a", name="row_mean", computes="S[m] = mean(n, f32(X[m, n]))", threads=512, cluster=(C, 1, 1), blocks_per_sm=3)
def row_mean_long(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32), C: tw.each(1, 4)):
    """Means of rows of any length of whole vectors; few rows are spread over clusters."""
    tw.assume(N % (16 // T.bytes) == 0)
    if C == 1:
        tw.assume(M >= 256)
    rank, m, s = long_row(X, plus, total, 0.0, C, 8192 // T.bytes, 4)
    if rank == 0:
        tw.store(S[m], (s / N).to(S.dtype))


@tw.kernel(target="sm_80", name="row_mean", computes="S[m] = mean(n, f32(X[m, n]))", threads=128)
def row_mean_short_any(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32)):
    """Means of rows of any length up to 256, one element a lane."""
    tw.assume(N <= 256)
    m, s = short_rows(X, total, 0.0, 8, 256)
    tw.store(S[m], (s / N).to(S.dtype))


@tw.kernel(target="sm_80", name="row_mean", computes="S[m] = mean(n, f32(X[m, n]))", threads=32, blocks_per_sm=32)
def row_mean_two(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16)):
    """Means of rows of any length and pitch, up to 2 KB in the registers of a warp, two of them."""
    m, s, t = two_rows(X, plus, total, 0.0, T, f32, 1024)
    tw.store(S[m], (s / N).to(S.dtype))
    tw.store(S[m + 1], (t / N).to(S.dtype))


@tw.kernel(target="sm_80", name="row_mean", computes="S[m] = mean(n, f32(X[m, n]))", threads=BYTES // 64, blocks_per_sm=tw.min(32, 1536 // (BYTES // 64)))
def row_mean_edges(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32), BYTES: tw.each(2048, 4096, 8192, 16384, 32768)):
    """Means of rows of any length and pitch, up to BYTES bytes in registers."""
    m, s = row_and_edges(X, plus, total, 0.0, T, f32, BYTES // T.bytes)
    tw.store(S[m], (s / N).to(S.dtype))


@tw.kernel(target="sm_90a", name="row_mean", computes="S[m] = mean(n, f32(X[m, n]))", threads=512, cluster=(C, 1, 1))
def row_mean_long_any(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32), C: tw.const(2, 4, 8) = 2, V: tw.const(4, 8) = 8):
    """Means of rows of any length, over the blocks of a cluster, one element a lane."""
    rank, m, s = long_row(X, plus, total, 0.0, C, 512 * V, 2)
    if rank == 0:
        tw.store(S[m], (s / N).to(S.dtype))


@tw.kernel(
    target="sm_90a", name="axis_mean", computes="S[a, b] = mean(r, f32(X[a, r, b]))", threads=1024 if COLUMNS == 1 else 128 if COLUMNS == 2 and T == bf16 else 256, cluster=(1 if COLUMNS == 3 else 8, 1, 1), blocks_per_sm=2 if COLUMNS == 1 else 8 if COLUMNS == 2 and T == bf16 else 4
)
def axis_mean_aligned(X: tw.Tensor(T, A, R, B), S: tw.Tensor(T, A, B), T: tw.each(bf16, f32), COLUMNS: tw.each(1, 2, 3)):
    """The mean over the middle axis, rows of whole vectors."""
    rank, a, b, s = vector_axis(X, plus, total, 0.0, T, COLUMNS)
    if rank == 0:
        tw.store(S[a, b : b + (16 if COLUMNS == 1 else 32 * T.bytes if COLUMNS == 2 else 512 // T.bytes)], (s / R).to(S.dtype))


@tw.kernel(target="sm_90a", name="axis_mean", computes="S[a, b] = mean(r, f32(X[a, r, b]))", threads=256, cluster=(G, 1, 1))
def axis_mean_any(X: tw.Tensor(T, A, R, B), S: tw.Tensor(T, A, B), T: tw.each(bf16, f32), G: tw.const(1, 2, 4, 8) = 8, BR: tw.const(8, 16, 32) = 16):
    """The mean over the middle axis, rows of any length: one element a lane."""
    rank, a, b, s = other_axis(X, plus, total, 0.0, G, 4, BR, 64)
    if rank == 0:
        tw.store(S[a, b : b + 64], (s / R).to(S.dtype))


@tw.kernel(target="sm_80", name="row_max", computes="S[m] = max(n, f32(X[m, n]))", threads=tw.min(512, tw.max(128, BYTES // 64)))
def row_max_short(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32), BYTES: tw.each(512, 2048, 8192, 32768)):
    """Maxima of rows of up to BYTES bytes of whole vectors, one row a block or several, four vectors a thread."""
    BN = BYTES // T.bytes
    tw.assume(N <= BN)
    tw.assume(N % (16 // T.bytes) == 0)
    m, s = short_rows(X, top, LOWEST, tw.max(1, 8192 // BYTES), BN)
    tw.store(S[m], s.to(S.dtype))


@tw.kernel(target="sm_90a", name="row_max", computes="S[m] = max(n, f32(X[m, n]))", threads=512, cluster=(C, 1, 1), blocks_per_sm=3)
def row_max_long(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32), C: tw.each(1, 4)):
    """Maxima of rows of any length of whole vectors; few rows are spread over clusters."""
    tw.assume(N % (16 // T.bytes) == 0)
    if C == 1:
        tw.assume(M >= 256)
    rank, m, s = long_row(X, larger, top, LOWEST, C, 8192 // T.bytes, 4)
    if rank == 0:
        tw.store(S[m], s.to(S.dtype))


@tw.kernel(target="sm_80", name="row_max", computes="S[m] = max(n, f32(X[m, n]))", threads=128)
def row_max_short_any(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32)):
    """Maxima of rows of any length up to 256, one element a lane."""
    tw.assume(N <= 256)
    m, s = short_rows(X, top, LOWEST, 8, 256)
    tw.store(S[m], s.to(S.dtype))


@tw.kernel(target="sm_80", name="row_max", computes="S[m] = max(n, f32(X[m, n]))", threads=32, blocks_per_sm=32)
def row_max_two(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16)):
    """Maxima of rows of any length and pitch, up to 2 KB in the registers of a warp, two of them."""
    m, s, t = two_rows(X, larger, top, LOWEST, T, T, 1024)
    tw.store(S[m], s.to(S.dtype))
    tw.store(S[m + 1], t.to(S.dtype))


@tw.kernel(target="sm_80", name="row_max", computes="S[m] = max(n, f32(X[m, n]))", threads=BYTES // 64, blocks_per_sm=tw.min(32, 1536 // (BYTES // 64)))
def row_max_edges(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32), BYTES: tw.each(2048, 4096, 8192, 16384, 32768)):
    """Maxima of rows of any length and pitch, up to BYTES bytes in registers."""
    m, s = row_and_edges(X, larger, top, LOWEST, T, T, BYTES // T.bytes)
    tw.store(S[m], s.to(S.dtype))


@tw.kernel(target="sm_90a", name="row_max", computes="S[m] = max(n, f32(X[m, n]))", threads=512, cluster=(C, 1, 1))
def row_max_long_any(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32), C: tw.const(2, 4, 8) = 2, V: tw.const(4, 8) = 8):
    """Maxima of rows of any length, over the blocks of a cluster, one element a lane."""
    rank, m, s = long_row(X, larger, top, LOWEST, C, 512 * V, 2)
    if rank == 0:
        tw.store(S[m], s.to(S.dtype))


@tw.kernel(
    target="sm_90a", name="axis_max", computes="S[a, b] = max(r, f32(X[a, r, b]))", threads=1024 if COLUMNS == 1 else 128 if COLUMNS == 2 and T == bf16 else 256, cluster=(1 if COLUMNS == 3 else 8, 1, 1), blocks_per_sm=2 if COLUMNS == 1 else 8 if COLUMNS == 2 and T == bf16 else 4
)
def axis_max_aligned(X: tw.Tensor(T, A, R, B), S: tw.Tensor(T, A, B), T: tw.each(bf16, f32), COLUMNS: tw.each(1, 2, 3)):
    """The maximum over the middle axis, rows of whole vectors."""
    rank, a, b, s = vector_axis(X, larger, top, LOWEST, T, COLUMNS)
    if rank == 0:
        tw.store(S[a, b : b + (16 if COLUMNS == 1 else 32 * T.bytes if COLUMNS == 2 else 512 // T.bytes)], s.to(S.dtype))


@tw.kernel(target="sm_90a", name="axis_max", computes="S[a, b] = max(r, f32(X[a, r, b]))", threads=256, cluster=(G, 1, 1))
def axis_max_any(X: tw.Tensor(T, A, R, B), S: tw.Tensor(T, A, B), T: tw.each(bf16, f32), G: tw.const(1, 2, 4, 8) = 8, BR: tw.const(8, 16, 32) = 16):
    """The maximum over the middle axis, rows of any length: one element a lane."""
    rank, a, b, s = other_axis(X, larger, top, LOWEST, G, 4, BR, 64)
    if rank == 0:
        tw.store(S[a, b : b + 64], s.to(S.dtype))


@tw.kernel(target="sm_80", name="row_min", computes="S[m] = min(n, f32(X[m, n]))", threads=tw.min(512, tw.max(128, BYTES // 64)))
def row_min_short(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32), BYTES: tw.each(512, 2048, 8192, 32768)):
    """Minima of rows of up to BYTES bytes of whole vectors, one row a block or several, four vectors a thread."""
    BN = BYTES // T.bytes
    tw.assume(N <= BN)
    tw.assume(N % (16 // T.bytes) == 0)
    m, s = short_rows(X, bottom, HIGHEST, tw.max(1, 8192 // BYTES), BN)
    tw.store(S[m], s.to(S.dtype))


@tw.kernel(target="sm_90a", name="row_min", computes="S[m] = min(n, f32(X[m, n]))", threads=512, cluster=(C, 1, 1), blocks_per_sm=3)
def row_min_long(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32), C: tw.each(1, 4)):
    """Minima of rows of any length of whole vectors; few rows are spread over clusters."""
    tw.assume(N % (16 // T.bytes) == 0)
    if C == 1:
        tw.assume(M >= 256)
    rank, m, s = long_row(X, smaller, bottom, HIGHEST, C, 8192 // T.bytes, 4)
    if rank == 0:
        tw.store(S[m], s.to(S.dtype))


@tw.kernel(target="sm_80", name="row_min", computes="S[m] = min(n, f32(X[m, n]))", threads=128)
def row_min_short_any(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32)):
    """Minima of rows of any length up to 256, one element a lane."""
    tw.assume(N <= 256)
    m, s = short_rows(X, bottom, HIGHEST, 8, 256)
    tw.store(S[m], s.to(S.dtype))


@tw.kernel(target="sm_80", name="row_min", computes="S[m] = min(n, f32(X[m, n]))", threads=32, blocks_per_sm=32)
def row_min_two(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16)):
    """Minima of rows of any length and pitch, up to 2 KB in the registers of a warp, two of them."""
    m, s, t = two_rows(X, smaller, bottom, HIGHEST, T, T, 1024)
    tw.store(S[m], s.to(S.dtype))
    tw.store(S[m + 1], t.to(S.dtype))


@tw.kernel(target="sm_80", name="row_min", computes="S[m] = min(n, f32(X[m, n]))", threads=BYTES // 64, blocks_per_sm=tw.min(32, 1536 // (BYTES // 64)))
def row_min_edges(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32), BYTES: tw.each(2048, 4096, 8192, 16384, 32768)):
    """Minima of rows of any length and pitch, up to BYTES bytes in registers."""
    m, s = row_and_edges(X, smaller, bottom, HIGHEST, T, T, BYTES // T.bytes)
    tw.store(S[m], s.to(S.dtype))


@tw.kernel(target="sm_90a", name="row_min", computes="S[m] = min(n, f32(X[m, n]))", threads=512, cluster=(C, 1, 1))
def row_min_long_any(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32), C: tw.const(2, 4, 8) = 2, V: tw.const(4, 8) = 8):
    """Minima of rows of any length, over the blocks of a cluster, one element a lane."""
    rank, m, s = long_row(X, smaller, bottom, HIGHEST, C, 512 * V, 2)
    if rank == 0:
        tw.store(S[m], s.to(S.dtype))


@tw.kernel(
    target="sm_90a", name="axis_min", computes="S[a, b] = min(r, f32(X[a, r, b]))", threads=1024 if COLUMNS == 1 else 128 if COLUMNS == 2 and T == bf16 else 256, cluster=(1 if COLUMNS == 3 else 8, 1, 1), blocks_per_sm=2 if COLUMNS == 1 else 8 if COLUMNS == 2 and T == bf16 else 4
)
def axis_min_aligned(X: tw.Tensor(T, A, R, B), S: tw.Tensor(T, A, B), T: tw.each(bf16, f32), COLUMNS: tw.each(1, 2, 3)):
    """The minimum over the middle axis, rows of whole vectors."""
    rank, a, b, s = vector_axis(X, smaller, bottom, HIGHEST, T, COLUMNS)
    if rank == 0:
        tw.store(S[a, b : b + (16 if COLUMNS == 1 else 32 * T.bytes if COLUMNS == 2 else 512 // T.bytes)], s.to(S.dtype))


@tw.kernel(target="sm_90a", name="axis_min", computes="S[a, b] = min(r, f32(X[a, r, b]))", threads=256, cluster=(G, 1, 1))
def axis_min_any(X: tw.Tensor(T, A, R, B), S: tw.Tensor(T, A, B), T: tw.each(bf16, f32), G: tw.const(1, 2, 4, 8) = 8, BR: tw.const(8, 16, 32) = 16):
    """The minimum over the middle axis, rows of any length: one element a lane."""
    rank, a, b, s = other_axis(X, smaller, bottom, HIGHEST, G, 4, BR, 64)
    if rank == 0:
        tw.store(S[a, b : b + 64], s.to(S.dtype))
