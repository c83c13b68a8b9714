"""What a training step needs beside products and norms: the loss with its gradient, the gradient of an embedding, the step of Adam."""
import tilewright as tw
from row_parts import LOG2E, LOWEST, exponential, united
from tilewright import bf16, f32, i32

M, N, V, P, L = tw.sizes("M N V P L")
T, BYTES, ROW = tw.parameters("T BYTES ROW")
LN2 = 0.6931471805599453


@tw.signature(
    target="sm_90a",
    computes="""
        let s[m] = logsumexp(n, f32(X[m, n]))
        loss[m] = s[m] - f32(X[m, target[m]])
        DX[m, n] = T((exp(f32(X[m, n]) - s[m]) - where(n == target[m], 1, 0)) * scale)
    """,
)
def cross_entropy_gradient(
    X: tw.Tensor(T, M, N),
    target: tw.Tensor(i32, M, range=N),
    loss: tw.Tensor(f32, M),
    DX: tw.Tensor(T, M, N),
    scale: tw.scalar(f32),  # of the loss: 1 / M for a mean
    T: tw.each(bf16, f32),
):
    """The loss of each row, and its gradient."""
    tw.assume(N % (16 // T.bytes) == 0)


@tw.kernel(cross_entropy_gradient, threads=tw.max(128, BYTES // 64), blocks_per_sm=1024 // tw.max(128, BYTES // 64))
def cross_entropy_gradient_short(X, target, loss, DX, scale, T, BYTES: tw.each(2048, 8192, 16384, 32768)):
    """Rows of up to BYTES bytes in registers."""
    BN = BYTES // T.bytes
    tw.assume(N <= BN)
    m = tw.grid(M)
    x = tw.load(X[m, 0:BN], fill=float("-inf")).to(f32)
    label = tw.load(target[m])
    picked = tw.load(X[m, target[m]]).to(f32)
    top = tw.max(x, axis=0)
    e = exponential(x, top, T)
    total = tw.sum(e, axis=0)
    e = e * (scale / total)
    tw.store(DX[m, 0:BN], tw.where(tw.arange(BN) == label, e - scale, e).to(T), hint="streaming")
    tw.store(loss[m], top + tw.log2(total) * LN2 - picked)


@tw.kernel(cross_entropy_gradient, threads=512, cluster=(ROW // 65536, 1, 1), blocks_per_sm=3)
def cross_entropy_gradient_staged(X, target, loss, DX, scale, T, ROW: tw.each(65536, 131072, 262144, 524288)):
    """Rows of up to ROW bytes in the shared memory of one block or of a cluster: a row is read once. While it arrives, every thread folds what it copied itself: the maximum of its vectors, and
    the sum of exponentials relative to it, at the price of one more exponential a vector. The cluster meets once; blocks of other rows compute while this one's row arrives."""
    C, THREADS = ROW // 65536, 512
    W = 16 // T.bytes
    BN = THREADS * W
    K = 65536 // (THREADS * 16)
    tw.assume(N <= ROW // T.bytes)
    if C == 1:
        rank = 0
        m = tw.grid(M)
    else:
        rank, m = tw.grid(C, M)
    s = tw.shared(T, (K, BN))
    vectors = tw.overlay(s, T, (K, THREADS, W))
    state = tw.shared(f32, (2,))
    n0 = rank * (K * BN)
    for k in tw.range(K):
        tw.cp_async(s[k], X[m, n0 + k * BN : n0 + k * BN + BN])
        tw.cp_async_commit()
    label = tw.load(target[m])
    picked = tw.load(X[m, target[m]]).to(f32)
    floor = LOWEST / 2 if T == bf16 else LOWEST  # for `exponential` in bf16: finite times LOG2E
    tops = tw.full(f32, (THREADS,), floor)
    sums = tw.zeros(f32, (THREADS,))
    for k in tw.range(K, unroll=2):
        tw.cp_async_commit()  # an empty group, so that always the same number of groups may be on its way
        tw.cp_async_wait(K)
        x = tw.load(vectors[k], layout=tw.rows()).to(f32)
        n = n0 + k * BN
        x = tw.where(tw.coord(x, 0) * W + tw.coord(x, 1) + n < N, x, float("-inf"))
        new_tops = tw.maximum(tops, tw.max(x, axis=1))
        sums = sums * exponential(tops, new_tops, T) + tw.sum(exponential(x, new_tops[:, None], T), axis=1)
        tops = new_tops
    top = tw.max(tops, axis=0)
    tw.store(state[0], top)
    tw.store(state[1], tw.sum(sums * tw.exp2((tops - top) * LOG2E, approx=True), axis=0))
    whole_top, total = united(state, C, floor)
    inverse = scale / total
    for k in tw.range(K, unroll=2):
        n = n0 + k * BN
        e = exponential(tw.load(s[k]).to(f32), whole_top, T) * inverse
        tw.store(DX[m, n : n + BN], tw.where(tw.arange(BN) + n == label, e - scale, e).to(T), hint="streaming")
    if rank == 0:
        tw.store(loss[m], whole_top + tw.log2(total) * LN2 - picked)


@tw.kernel(cross_entropy_gradient, threads=512, blocks_per_sm=2)
def cross_entropy_gradient_twice(X, target, loss, DX, scale, T, BN: tw.const(2048, 4096) = 4096):
    """Longer rows, a block each. Every lane has a maximum of its own for each of its places, so that nobody meets before the end of the first pass; the second pass finds the row in L2."""
    m = tw.grid(M)
    label = tw.load(target[m])
    top = tw.full(f32, (BN,), LOWEST)
    total = tw.zeros(f32, (BN,))
    for c in tw.range(tw.cdiv(N, BN), unroll=2):
        x = tw.load(X[m, c * BN : c * BN + BN], fill=float("-inf")).to(f32)
        new_top = tw.maximum(top, x)
        total = total * tw.exp2((top - new_top) * LOG2E, approx=True) + tw.exp2((x - new_top) * LOG2E, approx=True)
        top = new_top
    whole = tw.max(top, axis=0)
    s = whole + tw.log2(tw.sum(total * tw.exp2((top - whole) * LOG2E), axis=0)) * LN2
    tw.store(loss[m], s - tw.load(X[m, target[m]]).to(f32))
    for c in tw.range(tw.cdiv(N, BN), unroll=2):
        x = tw.load(X[m, c * BN : c * BN + BN], fill=0.0, hint="evict_first").to(f32)
        hit = tw.where(tw.arange(BN) + c * BN == label, 1.0, 0.0)
        tw.store(DX[m, c * BN : c * BN + BN], ((tw.exp2((x - s) * LOG2E, approx=True) - hit) * scale).to(T), hint="streaming")


@tw.kernel(
    target="sm_90a",
    name="embedding_gradient",
    computes="DW[v in 0:V, n] = sum(p in starts[v]:starts[v + 1], f32(DY[order[p], n]))",
    threads=128,
    blocks_per_sm=16,
)
def embedding_gradient(
    DY: tw.Tensor(T, L, N),
    order: tw.Tensor(i32, P, range=L),  # the positions, sorted by their token
    token: tw.Tensor(i32, P),  # their tokens
    starts: tw.Tensor(i32, V + 1, offsets_of="token"),  # where each token's positions begin
    DW: tw.Tensor(f32, V, N),
    T: tw.each(bf16, f32),
    BE: tw.const(512, 1024) = 1024,
    BV: tw.const(2, 4) = 2,
):
    """A block for BV rows of the table: it adds up each token's rows, always in the same order, and writes zeros where there are none. What is written is most of the bytes, and is written in whole lines."""
    tw.assume(N % (16 // T.bytes) == 0)
    b, bv = tw.grid(tw.cdiv(N, BE), tw.cdiv(V, BV))
    for i in tw.range(BV, unroll=True):
        v = bv * BV + i
        if v < V:
            total = tw.zeros(f32, (BE,))
            for p in tw.range(starts[v], starts[v + 1]):
                total = total + tw.load(DY[order[p], b * BE : b * BE + BE], fill=0.0, layout=tw.blocked(vector=4)).to(f32)
            tw.store(DW[v, b * BE : b * BE + BE], total, hint="streaming")


@tw.kernel(
    target="sm_90a",
    name="adam",
    computes="""
        let u[n] = beta1 * m[n] + (1 - beta1) * f32(G[n])
        let q[n] = beta2 * v[n] + (1 - beta2) * f32(G[n]) * f32(G[n])
        let x[n] = w[n] - rate * (u[n] * fix1 / (sqrt(maximum(q[n] * fix2, 0)) + eps) + decay * w[n])
        m[n] = u[n]
        v[n] = q[n]
        w[n] = x[n]
        W[n] = bf16(x[n])
    """,
    threads=256,
)
def adam(
    G: tw.Tensor(T, N),
    m: tw.Tensor(f32, N),
    v: tw.Tensor(f32, N),
    w: tw.Tensor(f32, N),
    W: tw.Tensor(bf16, N),
    beta1: tw.scalar(f32),
    beta2: tw.scalar(f32),
    rate: tw.scalar(f32),
    fix1: tw.scalar(f32),  # 1 / (1 - beta1^step)
    fix2: tw.scalar(f32),  # 1 / (1 - beta2^step)
    eps: tw.scalar(f32),
    decay: tw.scalar(f32),
    T: tw.each(bf16, f32),
    BA: tw.const(1024, 2048) = 1024,
):
    """AdamW on flat f32 parameters, with the bf16 copy that the next forward pass reads. State and parameters are updated in place."""
    tw.assume(N % 8 == 0)
    i = tw.grid(tw.cdiv(N, BA)) * BA
    g = tw.load(G[i : i + BA], fill=0.0, hint="streaming", layout=tw.blocked(vector=4)).to(f32)
    x = tw.load(w[i : i + BA], fill=0.0, hint="streaming")
    u = beta1 * tw.load(m[i : i + BA], fill=0.0, hint="streaming") + (1.0 - beta1) * g
    q = beta2 * tw.load(v[i : i + BA], fill=0.0, hint="streaming") + (1.0 - beta2) * g * g
    x = x - rate * (u * fix1 / (tw.sqrt(tw.maximum(q * fix2, 0.0)) + eps) + decay * x)
    tw.store(m[i : i + BA], u, hint="streaming")
    tw.store(v[i : i + BA], q, hint="streaming")
    tw.store(w[i : i + BA], x, hint="streaming")
    tw.store(W[i : i + BA], x.to(bf16), hint="streaming")
