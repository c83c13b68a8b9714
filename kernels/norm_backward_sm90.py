"""Backward of RMSNorm and LayerNorm over rows. A block has a run of rows: it writes their gradients and keeps its sums for the weights' gradients in registers; a second launch adds up the
blocks' sums, always in the same order. Nothing is saved from the forward pass but its input."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")
BYTES, T = tw.parameters("BYTES T")
PARTS = 528  # runs of rows: four blocks for each of 132 multiprocessors


@tw.kernel(
    target="sm_90a",
    name="rmsnorm_gradients",
    computes="""
        let r[m] = rsqrt(mean(j, f32(X[m, j]) * f32(X[m, j])) + eps)
        let c[m] = mean(j, f32(DY[m, j]) * f32(gamma[j]) * f32(X[m, j]))
        DX[m, n] = f32(DY[m, n]) * f32(gamma[n]) * r[m] - f32(X[m, n]) * r[m] * r[m] * r[m] * c[m]
        P[p, n] = sum(m in p * ((M + PARTS - 1) // PARTS) : minimum((p + 1) * ((M + PARTS - 1) // PARTS), M), f32(DY[m, n]) * f32(X[m, n]) * r[m])
    """,
    threads=tw.max(128, BYTES // 16),
    blocks_per_sm=1024 // tw.max(128, BYTES // 16),
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
    """Rows of up to BYTES bytes in registers, one at a time; other blocks of the multiprocessor load meanwhile."""
    BN = BYTES // T.bytes
    tw.assume(N <= BN)
    tw.assume(N % (16 // T.bytes) == 0)
    part = tw.grid(PARTS)
    first = part * tw.cdiv(M, PARTS)
    g = tw.load(gamma[0:BN], fill=0.0)
    total = tw.zeros(f32, (1, BN))
    for i in tw.range(tw.cdiv(M, PARTS)):
        m = first + i
        x = tw.load(X[m : m + 1, 0:BN], fill=0.0).to(f32)
        d = tw.load(DY[m : m + 1, 0:BN], fill=0.0).to(f32)
        scaled = d * g.to(f32)[None, :]
        r = tw.rsqrt(tw.sum(x * x, axis=1) / N + eps)
        cross = tw.sum(scaled * x, axis=1) / N
        tw.store(DX[m : m + 1, 0:BN], (scaled * r[:, None] - x * (r * r * r * cross)[:, None]).to(T))
        total = total + d * x * r[:, None]
    tw.store(P[part : part + 1, 0:BN], total)


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
    threads=tw.min(512, tw.max(128, BYTES // 16)),
    blocks_per_sm=tw.max(1, 768 // tw.max(128, BYTES // 16)),
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
    g = tw.load(gamma[0:BN], fill=0.0)
    weights = tw.zeros(f32, (1, BN))
    biases = tw.zeros(f32, (1, BN))
    for i in tw.range(tw.cdiv(M, PARTS)):
        m = first + i
        x = tw.load(X[m : m + 1, 0:BN], fill=0.0).to(f32)
        d = tw.load(DY[m : m + 1, 0:BN], fill=0.0).to(f32)
        mu = tw.sum(x, axis=1) / N
        x = tw.where(tw.coord(x, 1) < N, x - mu[:, None], 0.0)
        scaled = d * g.to(f32)[None, :]
        r = tw.rsqrt(tw.sum(x * x, axis=1) / N + eps)
        mean = tw.sum(scaled, axis=1) / N
        cross = tw.sum(scaled * x, axis=1) / N
        tw.store(DX[m : m + 1, 0:BN], ((scaled - mean[:, None] - x * (r * r * cross)[:, None]) * r[:, None]).to(T))
        weights = weights + d * x * r[:, None]
        biases = biases + d
    tw.store(P[part : part + 1, 0:BN], weights)
    tw.store(Q[part : part + 1, 0:BN], biases)


@tw.kernel(target="sm_90a", name="add_parts", computes="G[n] = sum(p, P[p, n])", threads=256, dependent_launch=True)
def add_parts(P: tw.Tensor(f32, PARTS, N), G: tw.Tensor(T, N), T: tw.each(bf16, f32), BN: tw.const(32, 64) = 32):
    """The sums of all blocks, 44 a thread row."""
    n = tw.grid(tw.cdiv(N, BN)) * BN
    total = tw.zeros(f32, (44, BN))
    for c in tw.range(12, unroll=2):
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
