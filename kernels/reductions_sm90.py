"""Sums, means, maxima and minima over the rows, and over any other axis, of a tensor: every element is read once, in address order."""
import tilewright as tw
from row_parts import larger, plus, smaller
from tilewright import bf16, f32

M, N = tw.sizes("M N")          # rows: X[M, N] over N
A, R, B = tw.sizes("A R B")     # any other axis: X[A, R, B] over R
BYTES, T, F, C, COLUMNS, G = tw.parameters("BYTES T F C COLUMNS G")

# What is folded: how two values are joined and a tile is folded, where it starts, and whether it needs f32.
SUM = tw.record(name="sum", join=plus, fold=tw.sum, start=0.0, wide=True)
MEAN = tw.record(SUM, name="mean")
MAX = tw.record(name="max", join=larger, fold=tw.max, start=float("-inf"), wide=False)
MIN = tw.record(name="min", join=smaller, fold=tw.min, start=float("inf"), wide=False)


@tw.inline
def of_row(s, F):
    return s / N if F.name == "mean" else s


@tw.inline
def of_axis(s, F):
    return s / R if F.name == "mean" else s


@tw.inline
def short_rows(X, F, BM, BN):
    """Rows of up to BN elements: first row of the block, and the reduced values of its rows."""
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], fill=F.start, hint="streaming").to(f32)
    return m, F.fold(x, axis=1)


@tw.inline
def parts_of(X, m, F, T, BN):
    """A row of any pitch, to be folded: the whole vectors that lie in it, and less than a vector before and after them, one element a lane."""
    V = 16 // T.bytes
    W = f32 if F.wide else T
    first = (V - m % V * (N % V) % V) % V
    end = first + (N - first) // V * V
    x = tw.load(X[m, first : first + BN], fill=F.start, hint="streaming", limit=(end,)).to(W)
    return x, tw.load(X[m, 0:V], fill=F.start, limit=(first,)).to(W), tw.load(X[m, end : end + V], fill=F.start).to(W)


@tw.inline
def folded(parts, F):
    x, head, tail = parts
    return F.join(F.fold(x, axis=0), F.join(F.fold(head, axis=0), F.fold(tail, axis=0)))


@tw.inline
def long_row(X, F, C, BN, U):
    """A row by one block, or over those of a cluster; each lane folds its part of every chunk, and everybody meets once at the end."""
    if C == 1:
        rank = 0
        m = tw.grid(M)
    else:
        rank, m = tw.grid(C, M)
    state = tw.shared(f32, (1,))
    rounds = tw.cdiv(N, BN * C)
    partial = tw.full(f32, (BN,), F.start)
    for c in tw.range(rounds, unroll=U):
        n = rank * rounds * BN + c * BN
        partial = F.join(partial, tw.load(X[m, n : n + BN], fill=F.start, hint="streaming").to(f32))
    tw.store(state[0], F.fold(partial, axis=0))
    tw.cluster_sync()
    whole = tw.full(f32, (), F.start)
    for r in tw.range(C, unroll=True):
        whole = F.join(whole, tw.load(state[0], rank=r))
    return rank, m, whole


@tw.inline
def other_axis(X, F, G, U, BR, BB):
    """Columns of the axis: a block folds BR rows of BB neighbouring elements at a time; a cluster of G blocks shares the axis."""
    rank, bb, a = tw.grid(G, tw.cdiv(B, BB), A)
    state = tw.shared(f32, (BB,))
    b = bb * BB
    rounds = tw.cdiv(R, BR * G)
    partial = tw.full(f32, (BR, BB), F.start)
    for c in tw.range(rounds, unroll=U):
        r = rank * rounds * BR + c * BR
        partial = F.join(partial, tw.load(X[a, r : r + BR, b : b + BB], fill=F.start, hint="streaming").to(f32))
    tw.store(state, F.fold(partial, axis=0))
    tw.cluster_sync()
    whole = tw.full(f32, (BB,), F.start)
    for g in tw.range(G, unroll=True):
        whole = F.join(whole, tw.load(state, rank=g))
    return rank, a, b, whole


@tw.signature(name="row_" + F.name, computes="S[m] = F(n, f32(X[m, n]))")
def of_rows(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), F: tw.each(SUM, MEAN, MAX, MIN), T: tw.each(bf16, f32)):
    """One value for each row."""


@tw.signature(name="axis_" + F.name, computes="S[a, b] = F(r, f32(X[a, r, b]))")
def of_columns(X: tw.Tensor(T, A, R, B), S: tw.Tensor(T, A, B), F: tw.each(SUM, MEAN, MAX, MIN), T: tw.each(bf16, f32)):
    """One value for each place of the axes around the middle one."""


@tw.kernel(of_rows, target="sm_80", threads=tw.min(512, tw.max(128, BYTES // 64)))
def short(X, S, F, T, BYTES: tw.each(512, 2048, 8192, 32768)):
    """Rows of up to BYTES bytes of whole vectors, one row a block or several, four vectors a thread."""
    BN = BYTES // T.bytes
    tw.assume(N <= BN)
    tw.assume(N % (16 // T.bytes) == 0)
    m, s = short_rows(X, F, tw.max(1, 8192 // BYTES), BN)
    tw.store(S[m], of_row(s, F).to(S.dtype))


@tw.kernel(of_rows, target="sm_90a", threads=512, cluster=(C, 1, 1), blocks_per_sm=3)
def long(X, S, F, T, C: tw.each(1, 4)):
    """Rows of any length of whole vectors; few rows are spread over clusters."""
    tw.assume(N % (16 // T.bytes) == 0)
    if C == 1:
        tw.assume(M >= 256)
    rank, m, s = long_row(X, F, C, 8192 // T.bytes, 4)
    if rank == 0:
        tw.store(S[m], of_row(s, F).to(S.dtype))


@tw.kernel(of_rows, target="sm_80", threads=128)
def short_any(X, S, F, T):
    """Rows of any length up to 256, one element a lane."""
    tw.assume(N <= 256)
    m, s = short_rows(X, F, 8, 256)
    tw.store(S[m], of_row(s, F).to(S.dtype))


@tw.kernel(of_rows, target="sm_80", threads=32, blocks_per_sm=32)
def two(X, S, F, T: tw.each(bf16)):
    """Rows of any length and pitch, up to 2 KB in the registers of a warp, two of them, both on their way before the first is folded: a GPU does not
    start blocks of 2 KB as fast as memory brings their rows."""
    tw.assume(N >= 16 // T.bytes)
    tw.assume(N <= 1024)
    tw.assume(M % 2 == 0)
    m = tw.grid(M // 2) * 2
    one = parts_of(X, m, F, T, 1024)
    other = parts_of(X, m + 1, F, T, 1024)
    s = folded(one, F)
    t = folded(other, F)
    tw.store(S[m], of_row(s, F).to(S.dtype))
    tw.store(S[m + 1], of_row(t, F).to(S.dtype))


@tw.kernel(of_rows, target="sm_80", threads=BYTES // 64, blocks_per_sm=tw.min(32, 1536 // (BYTES // 64)))
def edges(X, S, F, T, BYTES: tw.each(2048, 4096, 8192, 16384, 32768)):
    """Rows of any length and pitch, up to BYTES bytes in registers."""
    tw.assume(N >= 16 // T.bytes)
    tw.assume(N <= BYTES // T.bytes)
    m = tw.grid(M)
    s = folded(parts_of(X, m, F, T, BYTES // T.bytes), F)
    tw.store(S[m], of_row(s, F).to(S.dtype))


@tw.kernel(of_rows, target="sm_90a", threads=512, cluster=(C, 1, 1))
def long_any(X, S, F, T, C: tw.const(2, 4, 8) = 2, V: tw.const(4, 8) = 8):
    """Rows of any length, over the blocks of a cluster, one element a lane."""
    rank, m, s = long_row(X, F, C, 512 * V, 2)
    if rank == 0:
        tw.store(S[m], of_row(s, F).to(S.dtype))


# What a block takes of a row follows from how many columns there are to fill the GPU with: few (COLUMNS = 1): sectors, not lines, over clusters of large
# blocks; many (COLUMNS = 3): no clusters at all. G blocks share the axis, in chunks of BR rows of BB elements, U at a time.
AXIS = tw.table({
    (1, bf16): tw.record(threads=1024, blocks=2, G=8, U=4, BR=512, BB=16),
    (1, f32): tw.record(threads=1024, blocks=2, G=8, U=4, BR=256, BB=16),
    (2, bf16): tw.record(threads=128, blocks=8, G=8, U=16, BR=16, BB=64),
    (2, f32): tw.record(threads=256, blocks=4, G=8, U=4, BR=16, BB=128),
    (3, bf16): tw.record(threads=256, blocks=4, G=1, U=4, BR=8, BB=256),
    (3, f32): tw.record(threads=256, blocks=4, G=1, U=4, BR=8, BB=128),
})


@tw.kernel(of_columns, target="sm_90a", threads=AXIS[COLUMNS, T].threads, cluster=(AXIS[COLUMNS, T].G, 1, 1), blocks_per_sm=AXIS[COLUMNS, T].blocks)
def aligned(X, S, F, T, COLUMNS: tw.each(1, 2, 3)):
    """The middle axis, rows of whole vectors."""
    shape = AXIS[COLUMNS, T]
    tw.assume(B % (16 // T.bytes) == 0)
    if COLUMNS == 1:
        tw.assume(A * B <= 512)
    elif COLUMNS == 2:
        tw.assume(A * B * T.bytes < 131072)
    rank, a, b, s = other_axis(X, F, shape.G, shape.U, shape.BR, shape.BB)
    if rank == 0:
        tw.store(S[a, b : b + shape.BB], of_axis(s, F).to(S.dtype))


@tw.kernel(of_columns, target="sm_90a", threads=256, cluster=(G, 1, 1))
def any_length(X, S, F, T, G: tw.const(1, 2, 4, 8) = 8, BR: tw.const(8, 16, 32) = 16):
    """The middle axis, rows of any length: one element a lane."""
    rank, a, b, s = other_axis(X, F, G, 4, BR, 64)
    if rank == 0:
        tw.store(S[a, b : b + 64], of_axis(s, F).to(S.dtype))
