"""Layer normalisation over rows, with scale and shift. Rows that fit the registers of a block or the shared memory of a cluster or of all
blocks are read once."""
import tilewright as tw
from row_parts import ask_row
from tilewright import bf16, f32

M, N = tw.sizes("M N")
ROUNDS = 4  # rows between two uses of a place for sums
T, BYTES, ROW, BN, C = tw.parameters("T BYTES ROW BN C")


@tw.signature(
    computes="""
        let mu[m] = mean(n, f32(X[m, n]))
        let variance[m] = mean(n, (f32(X[m, n]) - mu[m]) ** 2)
        Y[m, n] = (f32(X[m, n]) - mu[m]) * rsqrt(variance[m] + eps) * f32(gamma[n]) + f32(beta[n])
    """
)
def layernorm(X: tw.Tensor(T, M, N), gamma: tw.Tensor(T, N), beta: tw.Tensor(T, N), Y: tw.Tensor(T, M, N), eps: tw.scalar(f32), T: tw.each(bf16, f32)):
    """Rows less their mean, over their standard deviation, scaled and shifted by column."""


@tw.inline
def whole_rows(X, gamma, beta, Y, eps, BM, BN, LATE):
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], fill=0.0).to(f32)
    if not LATE:
        g = tw.load(gamma[0:BN], fill=0.0)
        b = tw.load(beta[0:BN], fill=0.0)
    mu = tw.sum(x, axis=1) / N
    centred = tw.where(tw.coord(x, 1) < N, x - mu[:, None], 0.0)
    scale = tw.rsqrt(tw.sum(centred * centred, axis=1) / N + eps)
    if LATE:
        g = tw.load(gamma[0:BN], fill=0.0)
        b = tw.load(beta[0:BN], fill=0.0)
    tw.store(Y[m : m + BM, 0:BN], (centred * scale[:, None] * g.to(f32)[None, :] + b.to(f32)[None, :]).to(Y.dtype))


@tw.inline
def gathered(state, C):
    """The sum over the cluster of each block's number in `state`."""
    total = tw.zeros(f32, ())
    for r in tw.range(C, unroll=True):
        total = total + tw.load(state, rank=r)
    return total


@tw.inline
def inside(x, n, outside):
    return tw.where(tw.coord(x, 0) < N - n, x, outside)


@tw.inline
def middle(a, b, c):
    return tw.maximum(tw.minimum(a, b), tw.minimum(tw.maximum(a, b), c))


@tw.inline
def typical(X, m):
    """The middle one of three elements of the row: sums relative to it lose no digits, whatever the mean, and one element that is far off does no harm."""
    return middle(tw.load(X[m, 0]).to(f32), tw.load(X[m, N // 2]).to(f32), tw.load(X[m, N - 1]).to(f32))


@tw.inline
def whole_vectors(j, V):
    """Of the rows m with m % V == j: where the whole vectors begin, at the multiple of 16 bytes at or behind the row's start, and where they end."""
    h = (V - j * (N % V) % V) % V
    return h, h + (N - h) // V * V


@tw.inline
def bring(gamma, beta, weights, h, BN):
    """Weights to where rows that lie alike have them, one element a lane."""
    tw.store(weights[0], tw.load(gamma[h : h + BN], fill=0.0, layout=tw.blocked(vector=1)))
    tw.store(weights[1], tw.load(beta[h : h + BN], fill=0.0, layout=tw.blocked(vector=1)))
    tw.sync()


@tw.inline
def row_in_pieces(X, gamma, beta, weights, Y, eps, m, h, t, V, BN, T):
    """A row of any pitch: its whole vectors, from h to t, and less than a vector before and behind them, one element a lane."""
    x = tw.load(X[m, h : h + BN], fill=0.0, limit=(t,)).to(f32)
    head = tw.load(X[m, 0:V], fill=0.0, limit=(h,)).to(f32)
    tail = tw.load(X[m, t : t + V], fill=0.0).to(f32)
    mu = (tw.sum(x, axis=0) + tw.sum(head + tail, axis=0)) / N
    d = x - tw.where(tw.coord(x, 0) < t - h, mu, 0.0)           # one choice a vector
    dh = head - tw.where(tw.coord(head, 0) < h, mu, 0.0)
    dt = tail - tw.where(tw.coord(tail, 0) < N - t, mu, 0.0)
    scale = tw.rsqrt((tw.sum(d * d, axis=0) + tw.sum(dh * dh, axis=0) + tw.sum(dt * dt, axis=0)) / N + eps)
    tw.store(Y[m, h : h + BN], tw.fma(d * scale, tw.load(weights[0]).to(f32), tw.load(weights[1]).to(f32)).to(T), limit=(t,))
    tw.store(Y[m, 0:V], tw.fma(dh * scale, tw.load(gamma[0:V], fill=0.0).to(f32), tw.load(beta[0:V], fill=0.0).to(f32)).to(T), limit=(h,))
    tw.store(Y[m, t : t + V], tw.fma(dt * scale, tw.load(gamma[t : t + V], fill=0.0).to(f32), tw.load(beta[t : t + V], fill=0.0).to(f32)).to(T))


@tw.inline
def three(X, k):
    """Three elements of row k, for `middle`: asked for four rows before they are taken: the memory is busy, and an answer takes three microseconds."""
    m = tw.min(k, M - 1)
    return tw.load(X[m, 0]), tw.load(X[m, N // 2]), tw.load(X[m, N - 1])


@tw.inline
def send_row(row, s, k, n, p, S, AHEAD):
    """A row has come: its sums go to the team, and x - p stays where x was."""
    tw.cp_async_wait(AHEAD)
    if k < M:
        d = inside(tw.load(s[k % S]) - p, n, 0.0)
        tw.store(s[k % S], d)
        row.send(k, d, d * d)


ROWS = tw.table({  # what is not usual
    (bf16, 8192): tw.record(threads=256, full=1536, late=True),
    (bf16, 10240): tw.record(threads=160, full=960, late=True),
})


@tw.inline
def row_shape(T, BYTES):
    """Threads of a block, threads of a multiprocessor, and whether the weights are loaded last."""
    threads = tw.max(128, BYTES // T.bytes // 16 if BYTES > 4096 else BYTES // 32)
    return ROWS.get((T, BYTES), tw.record(threads=threads, full=1280 if T == bf16 and BYTES <= 16384 else 1024, late=False))


@tw.kernel(layernorm, target="sm_80", threads=row_shape(T, BYTES).threads, blocks_per_sm=row_shape(T, BYTES).full // row_shape(T, BYTES).threads)
def layernorm_rows(X, gamma, beta, Y, eps, T, BYTES: tw.each(256, 512, 1024, 2048, 4096, 6144, 8192, 10240, 12288, 16384, 20480, 24576, 32768)):
    """Rows of up to BYTES bytes in registers: two vectors of 16 bytes a thread (four in the larger ones of fp32, and in rows of 10 KB), one row a block or several short ones."""
    BN = BYTES // T.bytes
    tw.assume(N <= BN)
    tw.assume(N % (16 // T.bytes) == 0)
    whole_rows(X, gamma, beta, Y, eps, tw.max(1, 4096 // BYTES), BN, row_shape(T, BYTES).late)


@tw.kernel(layernorm, target="sm_90a", threads=384)
def layernorm_team(X, gamma, beta, Y, eps, T: tw.each(f32)):
    """Rows that keep all blocks of an H200 busy with 3072 columns each. All blocks share every row. Each has BN columns, whose weights it keeps in registers for the
    whole kernel, and a ring of rows in shared memory: rows are copied AHEAD rows ahead (every thread reads what it copied), folded when they have come, and written LAG rows
    later, when the sums of all blocks are back."""
    tw.assume(1 <= M)
    tw.assume(99 * 3072 < N and N <= 132 * 3072)
    tw.assume(N % 4 == 0)
    LAG, AHEAD, BN = 14, 3, 3072
    S = LAG + AHEAD + 1
    rank = tw.grid(132)
    n = rank * BN
    s = tw.shared(f32, (S, BN))
    row = tw.team(2, messages=M, depth=LAG + 1)
    for k in tw.range(AHEAD):
        ask_row(s, X, k, n, S, BN)
    g = tw.load(gamma[n : n + BN], fill=0.0)
    b = tw.load(beta[n : n + BN], fill=0.0)
    near = (three(X, 0), three(X, 1), three(X, 2), three(X, 3))
    for k in tw.range(LAG, unroll=4):
        ask_row(s, X, k + AHEAD, n, S, BN)
        send_row(row, s, k, n, middle(near[0][0], near[0][1], near[0][2]), S, AHEAD)
        near = near[1:] + (three(X, k + 4),)
    for m in tw.range(M, unroll=4):
        ask_row(s, X, m + LAG + AHEAD, n, S, BN)
        send_row(row, s, m + LAG, n, middle(near[0][0], near[0][1], near[0][2]), S, AHEAD)
        near = near[1:] + (three(X, m + LAG + 4),)
        first, second = row.receive(m)
        off = first / N
        scale = tw.rsqrt(second / N - off * off + eps)
        tw.store(Y[m, n : n + BN], (tw.load(s[m % S]) - off) * scale * g + b)


@tw.kernel(layernorm, target="sm_90a", cluster=(2, 1, 1))
def layernorm_streamed(X, gamma, beta, Y, eps, T: tw.each(f32)):
    """Rows in turn over one wave of clusters, 128 KB of each a block: one warpgroup asks for chunks, one sums up a row as it arrives, two write the row before. Nothing stands still
    between rows, and half of the weights never leave the registers."""
    C, K, BN, SLOTS, AHEAD = 2, 16, 2048, 20, 4
    tw.assume(7 * C * K * BN // 8 < N and N <= C * K * BN)
    tw.assume(N % 4 == 0)
    s = tw.shared(f32, (SLOTS, BN))
    ring = tw.pipeline(SLOTS, consumers=3)
    head = tw.shared(f32, (ROUNDS, 32))
    heads = tw.pipeline(ROUNDS)
    betas = tw.shared(f32, (AHEAD, BN))
    parts = tw.shared(f32, (ROUNDS, C + 1, 2))
    full = tw.mbarrier(ROUNDS, arrivals=C)
    with tw.warpgroups(0, regs=24):
        for m, part in tw.tiles(M, C, 1, 1, group=1, cluster_dim=1):
            h = heads.acquire()
            tw.tma_load(head[h], X[m, 0], on=heads.full(h))
            for k in tw.range(K):
                slot = ring.acquire()
                tw.tma_load(s[slot], X[m, (part * K + k) * BN], on=ring.full(slot))
    with tw.warpgroups(1, regs=104):
        # Folds this block's part of each row as it arrives and leaves the sums in every block of the cluster. p is of the row's first elements, which are
        # copied beside it. A place in `parts` is written again ROUNDS rows later: no block is that far ahead of another, because it needs the other's sums for
        # every row it writes.
        rank = tw.cluster_rank()
        group = tw.named_barrier(1, 128)
        r = 0
        for m, part in tw.tiles(M, C, 1, 1, group=1, cluster_dim=1):
            h = heads.wait()
            p = middle(tw.load(head[h, 0]).to(f32), tw.load(head[h, 1]).to(f32), tw.load(head[h, 2]).to(f32))
            group.sync()
            heads.release()
            first = tw.zeros(f32, (BN,))
            second = tw.zeros(f32, (BN,))
            for k in tw.range(K, unroll=2):
                slot = ring.wait()
                d = inside(tw.load(s[slot]).to(f32) - p, (part * K + k) * BN, 0.0)
                group.sync()
                ring.release()
                first = first + d
                second = second + d * d
            first_sum = tw.sum(first, axis=0)
            second_sum = tw.sum(second, axis=0)
            for b in tw.unroll(C):
                tw.store(parts[r % ROUNDS, rank, 0], first_sum, rank=b)
                tw.store(parts[r % ROUNDS, rank, 1], second_sum, rank=b)
            tw.store(parts[r % ROUNDS, C, 0], p)
            group.sync()
            for b in tw.unroll(C):
                full[r % ROUNDS].arrive(rank=b)
            r = r + 1
    with tw.warpgroups(2, 3, regs=192) as w:
        # Half of each chunk. gamma stays in registers; beta is copied again for every row, AHEAD chunks ahead, and read by who copied it.
        rank = tw.cluster_rank()
        group = tw.named_barrier(2 + w, 128)
        HALF = BN // 2
        at = w * HALF
        n = rank * K * BN + at
        g = ()
        for i in tw.unroll(K):
            g = g + (tw.load(gamma[n + i * BN : n + i * BN + HALF], fill=0.0),)
        r = 0
        for m, part in tw.tiles(M, C, 1, 1, group=1, cluster_dim=1):
            for j in tw.unroll(AHEAD):
                tw.cp_async(betas[j, at : at + HALF], beta[n + j * BN : n + j * BN + HALF])
                tw.cp_async_commit()
            full[r % ROUNDS].wait(r // ROUNDS % 2)
            first = tw.zeros(f32, ())
            second = tw.zeros(f32, ())
            for b in tw.unroll(C):
                first = first + tw.load(parts[r % ROUNDS, b, 0])
                second = second + tw.load(parts[r % ROUNDS, b, 1])
            off = first / N
            scale = tw.rsqrt(second / N - off * off + eps)
            shift = -(tw.load(parts[r % ROUNDS, C, 0]) + off) * scale
            for k in tw.unroll(K):
                tw.cp_async_wait(AHEAD - 1)
                b = tw.load(betas[k % AHEAD, at : at + HALF])
                slot = ring.wait()
                x = tw.load(s[slot, at : at + HALF])
                group.sync()
                ring.release()
                if k + AHEAD < K:
                    tw.cp_async(betas[k % AHEAD, at : at + HALF], beta[n + (k + AHEAD) * BN : n + (k + AHEAD) * BN + HALF])
                tw.cp_async_commit()
                to = (part * K + k) * BN + at
                tw.store(Y[m, to : to + HALF], tw.fma(tw.fma(x, scale, shift), g[k], b))
            r = r + 1


STAGED = tw.table({  # threads and blocks of a cluster, blocks of a multiprocessor, chunks of weights at a time
    (bf16, 65536): tw.record(threads=512, C=1, blocks=2, U=4),
    (bf16, 131072): tw.record(threads=256, C=4, blocks=6, U=2),
    (bf16, 262144): tw.record(threads=256, C=4, blocks=3, U=4),
    (bf16, 524288): tw.record(threads=256, C=8, blocks=3, U=4),
    (bf16, 802816): tw.record(threads=512, C=7, blocks=2, U=4),
    (bf16, 1612800): tw.record(threads=448, C=15, blocks=2, U=5),
    (f32, 65536): tw.record(threads=512, C=1, blocks=3, U=4),
    (f32, 131072): tw.record(threads=512, C=2, blocks=3, U=4),
    (f32, 262144): tw.record(threads=512, C=4, blocks=3, U=4),
    (f32, 524288): tw.record(threads=512, C=8, blocks=3, U=4),
    (f32, 802816): tw.record(threads=512, C=7, blocks=2, U=4),
    (f32, 1612800): tw.record(threads=448, C=15, blocks=2, U=5),
})


@tw.kernel(layernorm, target="sm_90a", threads=STAGED[T, ROW].threads, cluster=(STAGED[T, ROW].C, 1, 1), blocks_per_sm=STAGED[T, ROW].blocks)
def layernorm_staged(X, gamma, beta, Y, eps, T, ROW: tw.each(65536, 131072, 262144, 524288, 802816, 1612800)):
    """Rows of up to ROW bytes in the shared memory of one block or of a cluster; blocks of other rows compute while this one's row arrives. Mean and
    variance from the sums of x - p and (x - p)^2, so that the cluster meets once. They are folded while the row arrives; every thread reads what it copied, so nobody waits
    for anybody."""
    shape = STAGED[T, ROW]
    C = shape.C
    K = ROW // C // (16 * shape.threads)
    BN = 16 * shape.threads // T.bytes
    tw.assume(1 <= N and N <= ROW // T.bytes)
    tw.assume(N % (16 // T.bytes) == 0)
    if C == 1:
        rank = 0
        m = tw.grid(M)
    else:
        rank, m = tw.grid(C, M)
    s = tw.shared(T, (K, BN))
    sums = tw.shared(f32, (2,))
    n0 = rank * K * BN
    p = typical(X, m)               # asked for before the row: nothing is folded without it
    for k in tw.range(K):
        tw.cp_async(s[k], X[m, n0 + k * BN : n0 + k * BN + BN])
        tw.cp_async_commit()
    first = tw.zeros(f32, (BN,))
    second = tw.zeros(f32, (BN,))
    for k in tw.range(K, unroll=2):
        tw.cp_async_commit()        # an empty group, so that always the same number of groups may be on its way
        tw.cp_async_wait(K)
        d = inside(tw.load(s[k]).to(f32) - p, n0 + k * BN, 0.0)
        first = first + d
        second = second + d * d
    tw.store(sums[0], tw.sum(first, axis=0))
    tw.store(sums[1], tw.sum(second, axis=0))
    tw.cluster_sync()
    off = gathered(sums[0], C) / N
    scale = tw.rsqrt(gathered(sums[1], C) / N - off * off + eps)
    mu = p + off
    for k in tw.range(K, unroll=shape.U):
        n = n0 + k * BN
        g = tw.load(gamma[n : n + BN], fill=0.0).to(f32)
        b = tw.load(beta[n : n + BN], fill=0.0).to(f32)
        tw.store(Y[m, n : n + BN], ((tw.load(s[k]).to(f32) - mu) * scale * g + b).to(Y.dtype))


@tw.kernel(layernorm, target="sm_80", threads=128, blocks_per_sm=4)
def layernorm_rows_any(X, gamma, beta, Y, eps, T: tw.each(f32), BN: tw.each(256, 512, 1024)):
    """Short rows of any length, one element a lane."""
    tw.assume(N <= BN)
    whole_rows(X, gamma, beta, Y, eps, 2048 // BN, BN, False)


@tw.kernel(layernorm, target="sm_80", threads=128, blocks_per_sm=8 if BYTES <= 2048 else 6)
def layernorm_odd_short(X, gamma, beta, Y, eps, T: tw.each(bf16), BYTES: tw.each(512, 1024, 1536, 2048, 2560)):
    """Rows of any length and pitch, BYTES bytes of them and what is left beside whole vectors in the registers of a warp. A block's four rows lie alike, every V-th one, so that they share
    the weights, brought to where such rows have them."""
    V = 16 // T.bytes
    BN = BYTES // T.bytes
    tw.assume(V <= N and N - V + 1 <= BN)
    j, b = tw.grid(V, tw.cdiv(M, V * 4))
    h, t = whole_vectors(j, V)
    weights = tw.shared(T, (2, BN))
    bring(gamma, beta, weights, h, BN)
    with tw.warps(0, 1, 2, 3) as w:
        m = (b * 4 + w) * V + j
        if m < M:
            row_in_pieces(X, gamma, beta, weights, Y, eps, m, h, t, V, BN, T)


@tw.kernel(layernorm, target="sm_80", threads=BYTES // 64, blocks_per_sm=768 // (BYTES // 64))
def layernorm_odd(X, gamma, beta, Y, eps, T, BYTES: tw.each(4096, 6144, 8192, 12288, 16384, 24576, 36864)):
    """Longer ones, each in the registers of a block: four vectors a thread. One wave of blocks, each of which takes rows that lie alike and brings the weights once."""
    V = 16 // T.bytes
    BN = BYTES // T.bytes
    tw.assume(V <= N and N - V + 1 <= BN)
    C = 132 * (768 // (BYTES // 64)) // V
    j, b = tw.grid(V, C)
    h, t = whole_vectors(j, V)
    weights = tw.shared(T, (2, BN))
    bring(gamma, beta, weights, h, BN)
    for r in tw.range(tw.cdiv(M, V * C), unroll=False):
        m = (r * C + b) * V + j
        if m < M:
            row_in_pieces(X, gamma, beta, weights, Y, eps, m, h, t, V, BN, T)


@tw.kernel(layernorm, target="sm_90a", threads=BN // 16, cluster=(C, 1, 1))
def layernorm_cluster_any(X, gamma, beta, Y, eps, T, BN: tw.each(8192), C: tw.const(2, 4, 8) = 8):
    """BN elements of a row of any length in the registers of each block of a cluster."""
    tw.assume(N <= BN * C)
    rank, m = tw.grid(C, M)
    sums = tw.shared(f32, (2,))
    n = rank * BN
    x = tw.load(X[m, n : n + BN], fill=0.0, layout=tw.blocked(vector=1)).to(f32)
    tw.store(sums[0], tw.sum(x, axis=0))
    tw.cluster_sync()
    mu = gathered(sums[0], C) / N
    centred = tw.where(tw.coord(x, 0) + n < N, x - mu, 0.0)
    tw.store(sums[1], tw.sum(centred * centred, axis=0))
    tw.cluster_sync()
    scale = tw.rsqrt(gathered(sums[1], C) / N + eps)
    g = tw.load(gamma[n : n + BN], fill=0.0).to(f32)
    b = tw.load(beta[n : n + BN], fill=0.0).to(f32)
    tw.store(Y[m, n : n + BN], (centred * scale * g + b).to(Y.dtype))
