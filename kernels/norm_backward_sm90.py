"""Backward of RMSNorm and LayerNorm over rows. A block has a run of rows, which come through a ring, so that loads never wait for sums: a warpgroup writes their gradients and keeps its sums for
the weights' gradients in registers; a second launch adds up the blocks' sums, always in the same order. Nothing is saved from the forward pass but its input."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")
BYTES, T = tw.parameters("BYTES T")
PARTS = 396  # runs of rows: three blocks for each of 132 multiprocessors


@tw.inline
def bring(ring, sX, sD, X, DY, first):
    """The producer: the rows of a run, and the gradients that came for them."""
    for i in tw.range(tw.cdiv(M, PARTS)):
        slot = ring.acquire()
        tw.tma_load(sX[slot], X[first + i, 0], on=ring.full(slot), hint="evict_first")
        tw.tma_load(sD[slot], DY[first + i, 0], on=ring.full(slot), hint="evict_first")


@tw.kernel(
    target="sm_90a",
    name="rmsnorm_gradients",
    computes="""
        let r[m] = rsqrt(mean(j, f32(X[m, j]) * f32(X[m, j])) + eps)
        let c[m] = mean(j, f32(DY[m, j]) * f32(gamma[j]) * f32(X[m, j]))
        DX[m, n] = f32(DY[m, n]) * f32(gamma[n]) * r[m] - f32(X[m, n]) * r[m] * r[m] * r[m] * c[m]
        P[p, n] = sum(m in p * ((M + PARTS - 1) // PARTS) : minimum((p + 1) * ((M + PARTS - 1) // PARTS), M), f32(DY[m, n]) * f32(X[m, n]) * r[m])
    """,
    blocks_per_sm=3 if BYTES <= 8192 else 1,
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
    """Rows of up to BYTES bytes, one at a time; those that follow are on their way meanwhile."""
    BN = BYTES // T.bytes
    tw.assume(N <= BN)
    tw.assume(N % (16 // T.bytes) == 0)
    part = tw.grid(PARTS)
    first = part * tw.cdiv(M, PARTS)
    STAGES = tw.min(8, 32768 // BYTES) if BYTES <= 8192 else 6
    sX = tw.shared(T, (STAGES, 1, BN))
    sD = tw.shared(T, (STAGES, 1, BN))
    ring = tw.pipeline(STAGES)
    with tw.warpgroups(0, regs=24, name="producer"):
        bring(ring, sX, sD, X, DY, first)
    with tw.warpgroups(1, regs=136 if BYTES <= 8192 else 240, name="consumer"):
        own = tw.named_barrier(1, 128)
        if BYTES <= 8192:
            g = tw.load(gamma[0:BN], fill=0.0)
        total = tw.zeros(f32, (1, BN))
        for i in tw.range(tw.cdiv(M, PARTS)):
            slot = ring.wait()
            if BYTES > 8192:
                g = tw.load(gamma[0:BN], fill=0.0, hint="evict_last")  # no registers to keep them
            x = tw.load(sX[slot]).to(f32)
            scaled = tw.load(sD[slot]).to(f32) * g.to(f32)[None, :]
            r = tw.rsqrt(tw.sum(x * x, axis=1) / N + eps)
            cross = tw.sum(scaled * x, axis=1) / N
            if BYTES > 8192:
                g = tw.load(gamma[0:BN], fill=0.0, hint="evict_last")
            x = tw.load(sX[slot]).to(f32)  # again: registers are for the sums
            d = tw.load(sD[slot]).to(f32)
            tw.store(DX[first + i : first + i + 1, 0:BN], (d * g.to(f32)[None, :] * r[:, None] - x * (r * r * r * cross)[:, None]).to(T), hint="streaming")
            total = total + d * x * r[:, None]
            own.sync()
            ring.release()
        tw.store(P[part : part + 1, 0:BN], total)


@tw.inline
def centred(row, mu, column):
    """A part of a row less the row's mean, read again for each use: registers are for the sums."""
    x = tw.load(row).to(f32)
    return tw.where(tw.coord(x, 1) + column < N, x - mu[:, None], 0.0)


@tw.inline
def layernorm_part(DX, gamma, xs, ds, m, column, WIDE, mu, r, mean, cross, T):
    """The gradients of a part of a row; what it adds to those of weights and biases."""
    g = tw.load(gamma[column : column + WIDE], fill=0.0, hint="evict_last").to(f32)
    x = centred(xs, mu, column)
    d = tw.load(ds).to(f32)
    tw.store(DX[m : m + 1, column : column + WIDE], ((d * g[None, :] - mean[:, None] - x * (r * r * cross)[:, None]) * r[:, None]).to(T), hint="streaming")
    return d * x * r[:, None], d


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
    blocks_per_sm=3 if BYTES <= 4096 else 2 if BYTES <= 8192 else 1,
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
    """The same with a mean and a bias."""
    BN = BYTES // T.bytes
    tw.assume(N <= BN)
    tw.assume(N % (16 // T.bytes) == 0)
    part = tw.grid(PARTS)
    first = part * tw.cdiv(M, PARTS)
    STAGES = tw.min(8, 32768 // BYTES) if BYTES <= 8192 else 6
    sX = tw.shared(T, (STAGES, 1, BN))
    sD = tw.shared(T, (STAGES, 1, BN))
    ring = tw.pipeline(STAGES)
    with tw.warpgroups(0, regs=24, name="producer"):
        bring(ring, sX, sD, X, DY, first)
    with tw.warpgroups(1, regs=136 if BYTES <= 4096 else 232 if BYTES <= 8192 else 240, name="consumer"):
        own = tw.named_barrier(1, 128)
        WIDE = tw.min(BN, 8192 // T.bytes)  # what a warpgroup's registers hold of a row at a time
        weights = tw.zeros(f32, (1, WIDE))
        biases = tw.zeros(f32, (1, WIDE))
        if WIDE < BN:
            weights_right = tw.zeros(f32, (1, WIDE))
            biases_right = tw.zeros(f32, (1, WIDE))
        for i in tw.range(tw.cdiv(M, PARTS)):
            slot = ring.wait()
            mu = tw.sum(tw.load(sX[slot]).to(f32), axis=1) / N
            x = centred(sX[slot], mu, 0)
            r = tw.rsqrt(tw.sum(x * x, axis=1) / N + eps)
            scaled = tw.load(sD[slot]).to(f32) * tw.load(gamma[0:BN], fill=0.0, hint="evict_last").to(f32)[None, :]
            mean = tw.sum(scaled, axis=1) / N
            cross = tw.sum(scaled * centred(sX[slot], mu, 0), axis=1) / N
            of_weights, of_biases = layernorm_part(DX, gamma, sX[slot, :, 0:WIDE], sD[slot, :, 0:WIDE], first + i, 0, WIDE, mu, r, mean, cross, T)
            weights = weights + of_weights
            biases = biases + of_biases
            if WIDE < BN:
                of_weights, of_biases = layernorm_part(DX, gamma, sX[slot, :, WIDE:BN], sD[slot, :, WIDE:BN], first + i, WIDE, WIDE, mu, r, mean, cross, T)
                weights_right = weights_right + of_weights
                biases_right = biases_right + of_biases
            own.sync()
            ring.release()
        tw.store(P[part : part + 1, 0:WIDE], weights)
        tw.store(Q[part : part + 1, 0:WIDE], biases)
        if WIDE < BN:
            tw.store(P[part : part + 1, WIDE:BN], weights_right)
            tw.store(Q[part : part + 1, WIDE:BN], biases_right)


@tw.kernel(target="sm_90a", name="add_parts", computes="G[n] = sum(p, P[p, n])", threads=256, dependent_launch=True)
def add_parts(P: tw.Tensor(f32, PARTS, N), G: tw.Tensor(T, N), T: tw.each(bf16, f32), BN: tw.const(32, 64) = 32):
    """The sums of all blocks."""
    n = tw.grid(tw.cdiv(N, BN)) * BN
    total = tw.zeros(f32, (44, BN))
    for c in tw.range(PARTS // 44, unroll=3):
        total = total + tw.load(P[c * 44 : c * 44 + 44, n : n + BN], fill=0.0)
    tw.store(G[n : n + BN], tw.sum(total, axis=0).to(T))


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
    add_parts(P, DG)
    add_parts(Q, DB)
