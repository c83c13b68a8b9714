"""Row softmax. A row that fits a block's registers, or the shared memory of up to eight blocks, is read once; longer rows are read twice,
online. Each form for rows of whole 16-byte vectors, and for any row length."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")
LOG2E = 1.4426950408889634
LOWEST = -3.4028234663852886e38     # a floor for maxima of parts of a row: a part of nothing but -inf must not make inf - inf


@tw.inline
def whole_rows(X, Y, BM, BN):
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], fill=float("-inf")).to(f32)
    top = tw.max(x, axis=1)
    e = tw.exp2(tw.fma(x, LOG2E, (top * -LOG2E)[:, None]), approx=True)
    tw.store(Y[m : m + BM, 0:BN], (e * tw.rcp(tw.sum(e, axis=1))[:, None]).to(Y.dtype))


@tw.inline
def united(state, C):
    """The maximum and the sum of exponentials of the whole row, from those of the cluster's blocks."""
    tw.cluster_sync()
    top = tw.full(f32, (), LOWEST)
    total = tw.zeros(f32, ())
    for r in tw.range(C, unroll=True):
        t = tw.load(state[0], rank=r)
        new_top = tw.maximum(top, t)
        total = total * tw.exp2((top - new_top) * LOG2E) + tw.load(state[1], rank=r) * tw.exp2((t - new_top) * LOG2E)
        top = new_top
    return top, total


@tw.inline
def row_in_cluster(X, Y, C, BN):
    rank, m = tw.grid(C, M)
    state = tw.shared(f32, (2,))
    n = rank * BN
    x = tw.load(X[m, n : n + BN], fill=float("-inf")).to(f32)
    top = tw.maximum(tw.max(x, axis=0), LOWEST)
    e = tw.exp2((x - top) * LOG2E, approx=True)
    tw.store(state[0], top)
    tw.store(state[1], tw.sum(e, axis=0))
    whole_top, total = united(state, C)
    tw.store(Y[m, n : n + BN], (e * (tw.exp2((top - whole_top) * LOG2E) / total)).to(Y.dtype))


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
def row_in_shared(X, Y, T, C, K, BN):
    rank, m, n0 = own_part(C, K * BN)
    s = tw.shared(T, (K, BN))
    state = tw.shared(f32, (2,))
    staged(X, s, m, n0, K, BN)
    tops = tw.full(f32, (BN,), float("-inf"))
    for k in tw.range(K, unroll=2):
        tops = tw.maximum(tops, inside(tw.load(s[k]).to(f32), n0 + k * BN, float("-inf")))
    top = tw.maximum(tw.max(tops, axis=0), LOWEST)
    sums = tw.zeros(f32, (BN,))
    for k in tw.range(K, unroll=2):
        sums = sums + tw.exp2((inside(tw.load(s[k]).to(f32), n0 + k * BN, float("-inf")) - top) * LOG2E, approx=True)
    tw.store(state[0], top)
    tw.store(state[1], tw.sum(sums, axis=0))
    whole_top, total = united(state, C)
    scale = 1.0 / total
    for k in tw.range(K, unroll=2):
        n = n0 + k * BN
        tw.store(Y[m, n : n + BN], (tw.exp2((tw.load(s[k]).to(f32) - whole_top) * LOG2E, approx=True) * scale).to(Y.dtype))


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
    whole_top, whole = united(state, C)
    scale = 1.0 / whole
    for c in tw.range(rounds):
        n = rank * rounds * BN + c * BN
        x = tw.load(X[m, n : n + BN], fill=float("-inf")).to(f32)
        tw.store(Y[m, n : n + BN], (tw.exp2((x - whole_top) * LOG2E, approx=True) * scale).to(Y.dtype))


@tw.kernel(
    target="sm_80",
    name="softmax",
    computes="Y[m, n] = softmax(n, f32(X[m, n]))",
    threads=BYTES // 64 if BYTES > 16384 or BYTES % 4096 != 0 and BYTES > 4096 else tw.max(128, BYTES // 32),
    blocks_per_sm=1024 // (BYTES // 64) if BYTES > 16384 or BYTES % 4096 != 0 and BYTES > 4096 else 1536 // tw.max(128, BYTES // 32),
)
def softmax_rows(
    X: tw.Tensor(T, M, N),
    Y: tw.Tensor(T, M, N),
    T: tw.each(bf16, f32),
    BYTES: tw.each(256, 512, 1024, 2048, 4096, 6144, 8192, 10240, 12288, 16384, 20480, 24576, 32768),
):
    """Rows of up to BYTES bytes in registers: two vectors of 16 bytes a thread (four in the larger ones), one row a block or several short ones."""
    BN = BYTES // T.bytes
    tw.assume(N <= BN)
    tw.assume(N % (16 // T.bytes) == 0)
    whole_rows(X, Y, tw.max(1, 4096 // BYTES), BN)


@tw.kernel(
    target="sm_90a",
    name="softmax",
    computes="Y[m, n] = softmax(n, f32(X[m, n]))",
    threads=512 if T == bf16 or ROW > 524288 else 256,
    cluster=(tw.min(8, ROW // 65536), 1, 1),
    blocks_per_sm=221184 // (ROW // tw.min(8, ROW // 65536)),
)
def softmax_staged(X: tw.Tensor(T, M, N), Y: tw.Tensor(T, M, N), T: tw.each(bf16, f32), ROW: tw.each(65536, 131072, 262144, 524288, 851968, 1638400)):
    """Rows of up to ROW bytes in the shared memory of one block or of a cluster; blocks of other rows compute while this one's row arrives."""
    C = tw.min(8, ROW // 65536)
    CHUNK = 8192 if T == bf16 or ROW > 524288 else 4096
    tw.assume(N <= ROW // T.bytes)
    tw.assume(N % (16 // T.bytes) == 0)
    row_in_shared(X, Y, T, C, ROW // C // CHUNK, CHUNK // T.bytes)


@tw.kernel(
    target="sm_90a",
    name="softmax",
    computes="Y[m, n] = softmax(n, f32(X[m, n]))",
    threads=1024,
    cluster=(C, 1, 1),
)
def softmax_online(X: tw.Tensor(T, M, N), Y: tw.Tensor(T, M, N), T: tw.each(bf16, f32), V: tw.const(4, 8) = 4, C: tw.const(2, 4, 8) = 8):
    """Rows of any length, in chunks: read once for the maximum and the sum, and again to be written."""
    tw.assume(N % (16 // T.bytes) == 0)
    row_online(X, Y, C, 16384 * V // T.bytes)


@tw.kernel(
    target="sm_80",
    name="softmax",
    computes="Y[m, n] = softmax(n, f32(X[m, n]))",
    threads=tw.max(128, BN // (8 if T == f32 and BN <= 4096 else 16)),
    blocks_per_sm=tw.max(1, 1024 // tw.max(128, BN // (8 if T == f32 and BN <= 4096 else 16))),
)
def softmax_rows_any(X: tw.Tensor(T, M, N), Y: tw.Tensor(T, M, N), T: tw.each(bf16, f32), BN: tw.each(256, 512, 1024, 2048, 3072, 4096, 6144, 8192, 16384)):
    """Rows of any length up to BN: one element a lane, so that a warp's access is one piece of memory whatever its alignment."""
    tw.assume(N <= BN)
    whole_rows(X, Y, tw.max(1, 1024 // BN), BN)


@tw.kernel(target="sm_90a", name="softmax", computes="Y[m, n] = softmax(n, f32(X[m, n]))", threads=512, blocks_per_sm=3)
def softmax_lanes_any(X: tw.Tensor(T, M, N), Y: tw.Tensor(T, M, N), T: tw.each(bf16)):
    """Longer rows of 16-bit elements, read twice, one element a lane; each place of a chunk has a maximum of its own, so that nobody meets before the end."""
    BN = 4096
    m = tw.grid(M)
    tops = tw.full(f32, (BN,), LOWEST)
    sums = tw.zeros(f32, (BN,))
    for c in tw.range(tw.cdiv(N, BN), unroll=2):
        x = tw.load(X[m, c * BN : c * BN + BN], fill=float("-inf")).to(f32)
        new_tops = tw.maximum(tops, x)
        sums = sums * tw.exp2((tops - new_tops) * LOG2E, approx=True) + tw.exp2((x - new_tops) * LOG2E, approx=True)
        tops = new_tops
    top = tw.max(tops, axis=0)
    scale = 1.0 / tw.sum(sums * tw.exp2((tops - top) * LOG2E, approx=True), axis=0)
    for c in tw.range(tw.cdiv(N, BN), unroll=2):
        x = tw.load(X[m, c * BN : c * BN + BN], fill=float("-inf")).to(f32)
        tw.store(Y[m, c * BN : c * BN + BN], (tw.exp2((x - top) * LOG2E, approx=True) * scale).to(Y.dtype))


@tw.kernel(
    target="sm_90a",
    name="softmax",
    computes="Y[m, n] = softmax(n, f32(X[m, n]))",
    threads=BN // 16,
    cluster=(C, 1, 1),
)
def softmax_cluster_any(X: tw.Tensor(T, M, N), Y: tw.Tensor(T, M, N), T: tw.each(f32), BN: tw.each(8192, 16384), C: tw.const(2, 4, 8) = 8):
    """BN elements of a row of any length in the registers of each block of a cluster."""
    tw.assume(N <= BN * C)
    row_in_cluster(X, Y, C, BN)


@tw.kernel(target="sm_90a", name="softmax", computes="Y[m, n] = softmax(n, f32(X[m, n]))", threads=1024, cluster=(C, 1, 1))
def softmax_online_any(X: tw.Tensor(T, M, N), Y: tw.Tensor(T, M, N), T: tw.each(f32), C: tw.const(2, 4, 8) = 8):
    """Rows of any length and alignment, read twice."""
    row_online(X, Y, C, 8192)
