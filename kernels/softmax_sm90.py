"""Row softmax. A row that fits a block's registers, or the shared memory of up to eight blocks or of all, is read once; longer rows are read twice,
online. Each form for rows of whole 16-byte vectors, and for rows of any length and pitch, which are read from the multiple of 16 bytes (128 for long ones) at or before their
start."""
import tilewright as tw
from row_parts import LOG2E, LOWEST, ask_row, exponential, united
from tilewright import bf16, f32

M, N = tw.sizes("M N")
BYTES, T, ROW, C = tw.parameters("BYTES T ROW C")

@tw.inline
def whole_rows(X, Y, BM, BN):
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], fill=float("-inf")).to(f32)
    top = tw.max(x, axis=1)
    e = tw.exp2(tw.fma(x, LOG2E, (top * -LOG2E)[:, None]), approx=True)
    tw.store(Y[m : m + BM, 0:BN], (e * tw.rcp(tw.sum(e, axis=1))[:, None]).to(Y.dtype))


@tw.inline
def shift_of(m, V):
    """Elements between the multiple of V elements at or before a row's start and that start."""
    return m % V * (N % V) % V


@tw.inline
def shifted_row(X, Y, V, BN):
    m = tw.grid(M)
    n = -shift_of(m, V)
    x = tw.load(X[m, n : n + BN], fill=float("-inf")).to(f32)
    top = tw.max(x, axis=0)
    e = tw.exp2(tw.fma(x, LOG2E, top * -LOG2E), approx=True)
    tw.store(Y[m, n : n + BN], (e * tw.rcp(tw.sum(e, axis=0))).to(Y.dtype))


@tw.inline
def row_in_shared(X, Y, T, THREADS, C, K, SHIFTED):
    """A row in the shared memory of one block or of a cluster, K chunks of a vector a thread in each block. While it arrives, every thread folds what it copied itself: the maximum of its
    vectors, and the sum of exponentials relative to it, at the price of one more exponential a vector. The cluster meets once, and the chunks are written."""
    W = 16 // T.bytes
    BN = THREADS * W
    if C == 1:
        rank = 0
        m = tw.grid(M)
    else:
        rank, m = tw.grid(C, M)
    s = tw.shared(T, (K, BN))
    vectors = tw.overlay(s, T, (K, THREADS, W))
    state = tw.shared(f32, (2,))
    n0 = rank * (K * BN)
    if SHIFTED:
        n0 = n0 - shift_of(m, 128 // T.bytes)       # whole lines, for reads and writes alike
    for k in tw.range(K):
        tw.cp_async(s[k], X[m, n0 + k * BN : n0 + k * BN + BN])
        tw.cp_async_commit()
    floor = LOWEST / 2 if T == bf16 else LOWEST         # for `exponential` in bf16: finite times LOG2E
    tops = tw.full(f32, (THREADS,), floor)
    sums = tw.zeros(f32, (THREADS,))
    for k in tw.range(K, unroll=2):
        tw.cp_async_commit()        # an empty group, so that always the same number of groups may be on its way
        tw.cp_async_wait(K)
        x = tw.load(vectors[k], layout=tw.rows()).to(f32)
        n = n0 + k * BN
        if SHIFTED:
            x = tw.where((tw.coord(x, 0) * W + tw.coord(x, 1) + n >= 0) & (tw.coord(x, 0) * W + tw.coord(x, 1) + n < N), x, float("-inf"))
        else:
            x = tw.where(tw.coord(x, 0) * W + tw.coord(x, 1) + n < N, x, float("-inf"))
        new_tops = tw.maximum(tops, tw.max(x, axis=1))
        sums = sums * exponential(tops, new_tops, T) + tw.sum(exponential(x, new_tops[:, None], T), axis=1)
        tops = new_tops
    top = tw.max(tops, axis=0)
    tw.store(state[0], top)
    tw.store(state[1], tw.sum(sums * tw.exp2((tops - top) * LOG2E, approx=True), axis=0))
    whole_top, total = united(state, C, floor)
    scale = 1.0 / total
    for k in tw.range(K, unroll=2):
        n = n0 + k * BN
        tw.store(Y[m, n : n + BN], (exponential(tw.load(s[k]).to(f32), whole_top, T) * scale).to(Y.dtype))


@tw.inline
def send_row(row, vectors, k, n, T, THREADS, V, S, AHEAD):
    """A row has come: the maximum of each thread's vectors and the sum of exponentials relative to it go to the team."""
    W = 16 // T.bytes
    tw.cp_async_wait(AHEAD)
    if k < M:
        tops = tw.full(f32, (THREADS,), LOWEST)
        sums = tw.zeros(f32, (THREADS,))
        for v in tw.range(V, unroll=True):
            x = tw.load(vectors[k % S, v], layout=tw.rows()).to(f32)
            x = tw.where((v * THREADS + tw.coord(x, 0)) * W + tw.coord(x, 1) + n < N, x, float("-inf"))
            new_tops = tw.maximum(tops, tw.max(x, axis=1))
            sums = sums * exponential(tops, new_tops, T) + tw.sum(exponential(x, new_tops[:, None], T), axis=1)
            tops = new_tops
        row.send(k, tops, sums)


@tw.inline
def rows_in_team(X, Y, T, THREADS, V, LAG, AHEAD):
    """All blocks share every row. Each has V vectors a thread of it in a ring in shared memory: rows are copied AHEAD rows ahead (every thread reads what it copied), folded when they
    have come, and written LAG rows later, when maximum and sum of all blocks are back."""
    S = LAG + AHEAD + 1
    BN = THREADS * V * 16 // T.bytes
    rank = tw.grid(132)
    n = rank * BN
    s = tw.shared(T, (S, BN))
    vectors = tw.overlay(s, T, (S, V, THREADS, 16 // T.bytes))
    row = tw.team(2, messages=M, depth=LAG + 1, fold="exp_sum")
    for k in tw.range(AHEAD):
        ask_row(s, X, k, n, S, BN)
    for k in tw.range(LAG):
        ask_row(s, X, k + AHEAD, n, S, BN)
        send_row(row, vectors, k, n, T, THREADS, V, S, AHEAD)
    for m in tw.range(M):
        ask_row(s, X, m + LAG + AHEAD, n, S, BN)
        send_row(row, vectors, m + LAG, n, T, THREADS, V, S, AHEAD)
        top, total = row.receive(m)
        scale = 1.0 / total
        tw.store(Y[m, n : n + BN], (exponential(tw.load(s[m % S]).to(f32), top, T) * scale).to(T))


@tw.inline
def row_online(X, Y, C, BN):
    """Each block of the cluster takes every C-th chunk of the row; a running maximum and a running sum relative to it."""
    rank, m = tw.grid(C, M)
    state = tw.shared(f32, (2,))
    rounds = tw.cdiv(N, BN * C)
    top = tw.full(f32, (), LOWEST)
    total = tw.zeros(f32, ())
    for c in tw.range(rounds):
        n = rank * rounds * BN + c * BN
        x = tw.load(X[m, n : n + BN], fill=float("-inf")).to(f32)
        new_top = tw.maximum(top, tw.max(x, axis=0))
        total = total * tw.exp2((top - new_top) * LOG2E) + tw.sum(tw.exp2((x - new_top) * LOG2E, approx=True), axis=0)
        top = new_top
    tw.store(state[0], top)
    tw.store(state[1], total)
    whole_top, whole = united(state, C, LOWEST)
    scale = 1.0 / whole
    for c in tw.range(rounds):
        n = rank * rounds * BN + c * BN
        x = tw.load(X[m, n : n + BN], fill=float("-inf")).to(f32)
        tw.store(Y[m, n : n + BN], (tw.exp2((x - whole_top) * LOG2E, approx=True) * scale).to(Y.dtype))


ROWS = tw.table({9216: tw.record(threads=192, blocks=6)})


@tw.inline
def row_shape(BYTES):
    """Threads of a block and blocks of a multiprocessor for rows in registers."""
    wide = BYTES > 16384 or BYTES % 4096 != 0 and BYTES > 4096
    threads = BYTES // 64 if wide else tw.max(128, BYTES // 32)
    return ROWS.get(BYTES, tw.record(threads=threads, blocks=(1024 if wide else 1536) // threads))


@tw.signature(computes="Y[m, n] = softmax(n, f32(X[m, n]))")
def softmax(X: tw.Tensor(T, M, N), Y: tw.Tensor(T, M, N), T: tw.each(bf16, f32)):
    """e to each element, over the sum of these in its row."""


@tw.kernel(softmax, target="sm_80", threads=row_shape(BYTES).threads, blocks_per_sm=row_shape(BYTES).blocks)
def softmax_rows(X, Y, T, BYTES: tw.each(256, 512, 1024, 2048, 4096, 6144, 9216, 10240, 12288, 16384, 20480, 24576, 32768)):
    """Rows of up to BYTES bytes in registers: two vectors of 16 bytes a thread (three for rows of 8 KB, four in the larger ones), one row a block or several short ones."""
    BN = BYTES // T.bytes
    tw.assume(N <= BN)
    tw.assume(N % (16 // T.bytes) == 0)
    whole_rows(X, Y, tw.max(1, 4096 // BYTES), BN)


@tw.kernel(softmax, target="sm_90a", threads=384)
def softmax_team(X, Y, T: tw.each(f32)):
    """Rows that keep all blocks of an H200 busy with 3072 columns each."""
    tw.assume(1 <= M)
    tw.assume(99 * 3072 < N and N <= 132 * 3072)
    tw.assume(N % 4 == 0)
    rows_in_team(X, Y, T, 384, 2, 14, 3)


@tw.kernel(
    softmax,
    target="sm_90a",
    threads=512 if T == bf16 or ROW > 524288 else 256,
    cluster=(7 if ROW > 524288 else ROW // 65536, 1, 1),
    blocks_per_sm=229376 // (ROW // (7 if ROW > 524288 else ROW // 65536)),
)
def softmax_staged(X, Y, T, ROW: tw.each(65536, 131072, 262144, 524288, 802816, 1605632)):
    """Rows of up to ROW bytes in the shared memory of one block or of a cluster; blocks of other rows compute while this one's row arrives."""
    C = 7 if ROW > 524288 else ROW // 65536       # more clusters of seven than of eight find room at once
    THREADS = 512 if T == bf16 or ROW > 524288 else 256
    tw.assume(N <= ROW // T.bytes)
    tw.assume(N % (16 // T.bytes) == 0)
    row_in_shared(X, Y, T, THREADS, C, ROW // C // (THREADS * 16), False)


@tw.kernel(softmax, target="sm_90a", threads=1024, cluster=(C, 1, 1))
def softmax_online(X, Y, T, V: tw.const(4, 8) = 4, C: tw.const(2, 4, 8) = 8):
    """Rows of any length, in chunks: read once for the maximum and the sum, and again to be written."""
    tw.assume(N % (16 // T.bytes) == 0)
    row_online(X, Y, C, 16384 * V // T.bytes)


@tw.kernel(softmax, target="sm_80", threads=32 if BYTES <= 2560 else BYTES // 48, blocks_per_sm=tw.min(32, 1024 // (32 if BYTES <= 2560 else BYTES // 48)))
def softmax_shifted(X, Y, T, BYTES: tw.each(512, 1024, 1536, 2048, 2560, 4608, 6144, 9216, 12288, 18432, 24576)):
    """Rows of any length and pitch, up to BYTES bytes with what lies before, in the registers of a warp or of a block."""
    V = 16 // T.bytes
    tw.assume(N + V - 1 <= BYTES // T.bytes)
    shifted_row(X, Y, V, BYTES // T.bytes)


@tw.kernel(softmax, target="sm_90a", threads=416, cluster=(C, 1, 1), blocks_per_sm=3)
def softmax_staged_shifted(X, Y, T, C: tw.each(2, 4, 8)):
    """Longer rows of any length and pitch in the shared memory of a cluster: up to 64 KB and a line in each block."""
    K = 10
    tw.assume(N + 128 // T.bytes - 1 <= C * K * 416 * 16 // T.bytes)
    row_in_shared(X, Y, T, 416, C, K, True)


@tw.kernel(softmax, target="sm_90a", threads=1024, cluster=(C, 1, 1))
def softmax_online_any(X, Y, T, C: tw.const(2, 4, 8) = 8):
    """Rows of any length and pitch, read twice."""
    row_online(X, Y, C, 8192)
