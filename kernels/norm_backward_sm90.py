"""Backward of RMSNorm and LayerNorm over rows. A block has a run of rows, which are copied ahead into a ring, every thread what it reads itself, so that nobody waits for a row but those who have it; all
threads meet once a row, for all of its sums. What a column adds to the weights' gradients stays in registers; a second launch adds up what the blocks have, always in the same order. Nothing is saved from
the forward pass but its input."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")
BYTES, T = tw.parameters("BYTES T")
PARTS = 256  # runs of rows: nearly two blocks for each of 132 multiprocessors


@tw.inline
def rows_ahead(BYTES, BLOCKS):
    """Places of the ring, for X and DY: 192 KB in the blocks of a multiprocessor."""
    return tw.min(12, 98304 // BYTES // BLOCKS)


@tw.inline
def ask(sX, sD, X, DY, first, i, rows, S, BN):
    """Row i of the run, or nothing behind its last one."""
    tw.cp_async(sX[i % S], X[first + i : first + i + 1, 0:BN], limit=(first + rows, None))
    tw.cp_async(sD[i % S], DY[first + i : first + i + 1, 0:BN], limit=(first + rows, None))
    tw.cp_async_commit()


@tw.kernel(
    target="sm_90a",
    name="rmsnorm_gradients",
    computes="""
        let r[m] = rsqrt(mean(j, f32(X[m, j]) * f32(X[m, j])) + eps)
        let c[m] = mean(j, f32(DY[m, j]) * f32(gamma[j]) * f32(X[m, j]))
        DX[m, n] = f32(DY[m, n]) * f32(gamma[n]) * r[m] - f32(X[m, n]) * r[m] * r[m] * r[m] * c[m]
        P[p, n] = sum(m in p * ((M + PARTS - 1) // PARTS) : minimum((p + 1) * ((M + PARTS - 1) // PARTS), M), f32(DY[m, n]) * f32(X[m, n]) * r[m])
    """,
    threads=tw.min(256, BYTES // 16),
    blocks_per_sm=2,
)
def rmsnorm_gradients(
    X: tw.Tensor(T, M, N),
    gamma: tw.Tensor(T, N),
    DY: tw.Tensor(T, M, N),
    DX: tw.Tensor(T, M, N),
    P: tw.Tensor(f32, PARTS, N),
    eps: tw.scalar(f32, positive=True),
    T: tw.each(bf16, f32),
    BYTES: tw.each(2048, 4096, 8192, 16384),
):
    """Rows of up to BYTES bytes."""
    BN = BYTES // T.bytes
    S = rows_ahead(BYTES, 2)
    tw.assume(1 <= N and N <= BN)
    tw.assume(N % (16 // T.bytes) == 0)
    part = tw.grid(PARTS)
    rows = tw.cdiv(M, PARTS)
    first = part * rows
    sX = tw.shared(T, (S, 1, BN))
    sD = tw.shared(T, (S, 1, BN))
    for i in tw.range(S - 1):
        ask(sX, sD, X, DY, first, i, rows, S, BN)
    g = tw.load(gamma[0:BN], fill=0.0)
    total = tw.zeros(f32, (1, BN))
    for i in tw.range(rows):
        ask(sX, sD, X, DY, first, i + S - 1, rows, S, BN)
        tw.cp_async_wait(S - 1)
        x = tw.load(sX[i % S]).to(f32)
        d = tw.load(sD[i % S]).to(f32)
        r = tw.rsqrt(tw.sum(x * x, axis=1) / N + eps)
        cross = tw.sum(d * g.to(f32)[None, :] * x, axis=1) / N
        x = tw.load(sX[i % S]).to(f32)  # again: registers are for the sums
        d = tw.load(sD[i % S]).to(f32)
        tw.store(DX[first + i : first + i + 1, 0:BN], (d * g.to(f32)[None, :] * r[:, None] - x * (r * r * r * cross)[:, None]).to(T), hint="streaming")
        total = total + d * x * r[:, None]
    tw.store(P[part : part + 1, 0:BN], total)


@tw.inline
def middle(a, b, c):
    return tw.maximum(tw.minimum(a, b), tw.minimum(tw.maximum(a, b), c))


@tw.kernel(
    target="sm_90a",
    name="layernorm_gradients",
    computes="""
        let mu[m] = mean(j, f32(X[m, j]))
        let r[m] = rsqrt(mean(j, (f32(X[m, j]) - mu[m]) * (f32(X[m, j]) - mu[m])) + eps)
        let a[m] = mean(j, f32(DY[m, j]) * f32(gamma[j]))
        let c[m] = mean(j, f32(DY[m, j]) * f32(gamma[j]) * (f32(X[m, j]) - mu[m]) * r[m])
        DX[m, n] = r[m] * (f32(DY[m, n]) * f32(gamma[n]) - a[m] - (f32(X[m, n]) - mu[m]) * r[m] * c[m])
        P[p, n] = sum(m in p * ((M + PARTS - 1) // PARTS) : minimum((p + 1) * ((M + PARTS - 1) // PARTS), M), f32(DY[m, n]) * (f32(X[m, n]) - mu[m]) * r[m])
        Q[p, n] = sum(m in p * ((M + PARTS - 1) // PARTS) : minimum((p + 1) * ((M + PARTS - 1) // PARTS), M), f32(DY[m, n]))
    """,
    threads=512 if BYTES > 8192 else tw.min(256, BYTES // 16),
    blocks_per_sm=1 if BYTES > 8192 else 2,
)
def layernorm_gradients(
    X: tw.Tensor(T, M, N),
    gamma: tw.Tensor(T, N),
    DY: tw.Tensor(T, M, N),
    DX: tw.Tensor(T, M, N),
    P: tw.Tensor(f32, PARTS, N),
    Q: tw.Tensor(f32, PARTS, N),
    eps: tw.scalar(f32, positive=True),
    T: tw.each(bf16, f32),
    BYTES: tw.each(2048, 4096, 8192, 16384),
):
    """The same with a mean and a bias. Sums are of x - p, with p the middle one of three elements of the row: all of a row's sums are folded in one pass, and lose no digits whatever its mean: two of them are there in every row, and a third in rows of more than BYTES / 2. Every thread
    reads the three elements, so a row has come a round before it is folded."""
    BN = BYTES // T.bytes
    S = rows_ahead(BYTES, 1 if BYTES > 8192 else 2)
    tw.assume(1 <= N and N <= BN)
    tw.assume(N % (16 // T.bytes) == 0)
    part = tw.grid(PARTS)
    rows = tw.cdiv(M, PARTS)
    first = part * rows
    sX = tw.shared(T, (S, 1, BN))
    sD = tw.shared(T, (S, 1, BN))
    for i in tw.range(S - 1):
        ask(sX, sD, X, DY, first, i, rows, S, BN)
    g = tw.load(gamma[0:BN], fill=0.0)
    weights = tw.zeros(f32, (1, BN))
    biases = tw.zeros(f32, (1, BN))
    tw.cp_async_wait(S - 2)
    tw.sync()
    for i in tw.range(rows):
        ask(sX, sD, X, DY, first, i + S - 1, rows, S, BN)
        p = middle(tw.load(sX[i % S, 0, 0]).to(f32), tw.load(sX[i % S, 0, 16 // T.bytes - 1]).to(f32), tw.load(sX[i % S, 0, BN // 2 - 1]).to(f32))
        tw.cp_async_wait(S - 2)
        x = tw.load(sX[i % S]).to(f32)
        x = tw.where(tw.coord(x, 1) < N, x - p, 0.0)
        dg = tw.load(sD[i % S]).to(f32) * g.to(f32)[None, :]
        off = tw.sum(x, axis=1) / N
        squares = tw.sum(x * x, axis=1) / N
        mean = tw.sum(dg, axis=1) / N
        across = tw.sum(dg * x, axis=1) / N
        r = tw.rsqrt(squares - off * off + eps)
        k0 = mean * r
        k2 = r * r * r * (across - off * mean)
        mu = p + off
        x = tw.load(sX[i % S]).to(f32) - mu[:, None]
        d = tw.load(sD[i % S]).to(f32)
        tw.store(DX[first + i : first + i + 1, 0:BN], (d * g.to(f32)[None, :] * r[:, None] - k0[:, None] - x * k2[:, None]).to(T), hint="streaming")
        weights = weights + (d * r[:, None]) * x
        biases = biases + d
    tw.store(P[part : part + 1, 0:BN], weights)
    tw.store(Q[part : part + 1, 0:BN], biases)


@tw.kernel(target="sm_90a", name="add_parts", computes="G[n] = sum(p, P[p, n])", threads=256, dependent_launch=True)
def add_parts(P: tw.Tensor(f32, PARTS, N), G: tw.Tensor(T, N), T: tw.each(bf16, f32), BN: tw.const(32, 64) = 32):
    """The sums of all blocks."""
    n = tw.grid(tw.cdiv(N, BN)) * BN
    total = tw.zeros(f32, (64, BN))
    for c in tw.range(PARTS // 64, unroll=True):
        total = total + tw.load(P[c * 64 : c * 64 + 64, n : n + BN], fill=0.0)
    tw.store(G[n : n + BN], tw.sum(total, axis=0).to(T))


@tw.kernel(target="sm_90a", name="add_both_parts", computes="G[n] = sum(p, P[p, n]); H[n] = sum(p, Q[p, n])", threads=256, dependent_launch=True)
def add_both_parts(P: tw.Tensor(f32, PARTS, N), Q: tw.Tensor(f32, PARTS, N), G: tw.Tensor(T, N), H: tw.Tensor(T, N), T: tw.each(bf16, f32), BN: tw.const(32, 64) = 32):
    """Those of two tensors."""
    n = tw.grid(tw.cdiv(N, BN)) * BN
    first = tw.zeros(f32, (64, BN))
    second = tw.zeros(f32, (64, BN))
    for c in tw.range(PARTS // 64, unroll=True):
        first = first + tw.load(P[c * 64 : c * 64 + 64, n : n + BN], fill=0.0)
        second = second + tw.load(Q[c * 64 : c * 64 + 64, n : n + BN], fill=0.0)
    tw.store(G[n : n + BN], tw.sum(first, axis=0).to(T))
    tw.store(H[n : n + BN], tw.sum(second, axis=0).to(T))


@tw.program(
    computes="""
        let r[m] = rsqrt(mean(j, f32(X[m, j]) * f32(X[m, j])) + eps)
        let c[m] = mean(j, f32(DY[m, j]) * f32(gamma[j]) * f32(X[m, j]))
        DX[m, n] = f32(DY[m, n]) * f32(gamma[n]) * r[m] - f32(X[m, n]) * r[m] * r[m] * r[m] * c[m]
        DG[n] = sum(m, f32(DY[m, n]) * f32(X[m, n]) * r[m])
    """
)
def rmsnorm_backward(X: tw.Tensor(bf16, M, N), gamma: tw.Tensor(bf16, N), DY: tw.Tensor(bf16, M, N), DX: tw.Tensor(bf16, M, N), DG: tw.Tensor(bf16, N), eps: tw.scalar(f32, positive=True)):
    P = tw.buffer(f32, PARTS, N)
    rmsnorm_gradients(X, gamma, DY, DX, P, eps)
    add_parts(P, DG)


@tw.program(
    computes="""
        let mu[m] = mean(j, f32(X[m, j]))
        let r[m] = rsqrt(mean(j, (f32(X[m, j]) - mu[m]) * (f32(X[m, j]) - mu[m])) + eps)
        let a[m] = mean(j, f32(DY[m, j]) * f32(gamma[j]))
        let c[m] = mean(j, f32(DY[m, j]) * f32(gamma[j]) * (f32(X[m, j]) - mu[m]) * r[m])
        DX[m, n] = r[m] * (f32(DY[m, n]) * f32(gamma[n]) - a[m] - (f32(X[m, n]) - mu[m]) * r[m] * c[m])
        DG[n] = sum(m, f32(DY[m, n]) * (f32(X[m, n]) - mu[m]) * r[m])
        DB[n] = sum(m, f32(DY[m, n]))
    """
)
def layernorm_backward(
    X: tw.Tensor(bf16, M, N), gamma: tw.Tensor(bf16, N), DY: tw.Tensor(bf16, M, N), DX: tw.Tensor(bf16, M, N), DG: tw.Tensor(bf16, N), DB: tw.Tensor(bf16, N), eps: tw.scalar(f32, positive=True)
):
    P = tw.buffer(f32, PARTS, N)
    Q = tw.buffer(f32, PARTS, N)
    layernorm_gradients(X, gamma, DY, DX, P, Q, eps)
    add_both_parts(P, Q, DG, DB)
