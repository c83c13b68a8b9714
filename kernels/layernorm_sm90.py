"""Layer normalisation over rows, with scale and shift. Rows that fit the registers of a block or of a cluster are read once."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.inline
def whole_rows(X, gamma, beta, Y, eps, BM, BN):
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], fill=0.0).to(f32)
    g = tw.load(gamma[0:BN], fill=0.0)
    b = tw.load(beta[0:BN], fill=0.0)
    mu = tw.sum(x, axis=1) / N
    centred = tw.where(tw.coord(x, 1) < N, x - mu[:, None], 0.0)
    scale = tw.rsqrt(tw.sum(centred * centred, axis=1) / N + eps)
    tw.store(Y[m : m + BM, 0:BN], (centred * scale[:, None] * g.to(f32)[None, :] + b.to(f32)[None, :]).to(Y.dtype))


@tw.inline
def across(state, C):
    """The sum over the cluster of each block's number in `state`."""
    tw.cluster_sync()
    total = tw.zeros(f32, ())
    for r in tw.range(C, unroll=True):
        total = total + tw.load(state, rank=r)
    return total


@tw.inline
def row_in_cluster(X, gamma, beta, Y, eps, C, BN):
    rank, m = tw.grid(C, M)
    sums = tw.shared(f32, (2,))
    n = rank * BN
    x = tw.load(X[m, n : n + BN], fill=0.0).to(f32)
    tw.store(sums[0], tw.sum(x, axis=0))
    mu = across(sums[0], C) / N
    centred = tw.where(tw.coord(x, 0) + n < N, x - mu, 0.0)
    tw.store(sums[1], tw.sum(centred * centred, axis=0))
    scale = tw.rsqrt(across(sums[1], C) / N + eps)
    g = tw.load(gamma[n : n + BN], fill=0.0).to(f32)
    b = tw.load(beta[n : n + BN], fill=0.0).to(f32)
    tw.store(Y[m, n : n + BN], (centred * scale * g + b).to(Y.dtype))


@tw.kernel(
    target="sm_80",
    name="layernorm",
    computes="""
        let mu[m] = mean(n, f32(X[m, n]))
        let variance[m] = mean(n, (f32(X[m, n]) - mu[m]) ** 2)
        Y[m, n] = (f32(X[m, n]) - mu[m]) * rsqrt(variance[m] + eps) * f32(gamma[n]) + f32(beta[n])
    """,
    threads=tw.max(128, BYTES // T.bytes // 16 if BYTES > 4096 else BYTES // 32),
    blocks_per_sm=(1280 if T == bf16 and BYTES <= 16384 else 1024) // tw.max(128, BYTES // T.bytes // 16 if BYTES > 4096 else BYTES // 32),
)
def layernorm_rows(
    X: tw.Tensor(T, M, N),
    gamma: tw.Tensor(T, N),
    beta: tw.Tensor(T, N),
    Y: tw.Tensor(T, M, N),
    eps: tw.scalar(f32),
    T: tw.each(bf16, f32),
    BYTES: tw.each(256, 512, 1024, 2048, 4096, 6144, 8192, 10240, 12288, 16384, 20480, 24576, 32768),
):
    """Rows of up to BYTES bytes in registers: two vectors of 16 bytes a thread (four in the larger ones of fp32), one row a block or several short ones."""
    BN = BYTES // T.bytes
    tw.assume(N <= BN)
    tw.assume(N % (16 // T.bytes) == 0)
    whole_rows(X, gamma, beta, Y, eps, tw.max(1, 4096 // BYTES), BN)


@tw.kernel(
    target="sm_90a",
    name="layernorm",
    computes="""
        let mu[m] = mean(n, f32(X[m, n]))
        let variance[m] = mean(n, (f32(X[m, n]) - mu[m]) ** 2)
        Y[m, n] = (f32(X[m, n]) - mu[m]) * rsqrt(variance[m] + eps) * f32(gamma[n]) + f32(beta[n])
    """,
    threads=BYTES // (16 * V),
    cluster=(C, 1, 1),
    blocks_per_sm=tw.max(1, 16384 * V // BYTES),
)
def layernorm_cluster(
    X: tw.Tensor(T, M, N),
    gamma: tw.Tensor(T, N),
    beta: tw.Tensor(T, N),
    Y: tw.Tensor(T, M, N),
    eps: tw.scalar(f32),
    T: tw.each(bf16, f32),
    BYTES: tw.each(8192, 16384, 32768),
    C: tw.const(2, 4, 8) = 8,
    V: tw.const(4, 8) = 4,
):
    """BYTES bytes of the row in the registers of each block of a cluster; the blocks exchange their sums."""
    BN = BYTES // T.bytes
    tw.assume(N <= BN * C)
    tw.assume(N % (16 // T.bytes) == 0)
    row_in_cluster(X, gamma, beta, Y, eps, C, BN)


@tw.kernel(
    target="sm_80",
    name="layernorm",
    computes="""
        let mu[m] = mean(n, f32(X[m, n]))
        let variance[m] = mean(n, (f32(X[m, n]) - mu[m]) ** 2)
        Y[m, n] = (f32(X[m, n]) - mu[m]) * rsqrt(variance[m] + eps) * f32(gamma[n]) + f32(beta[n])
    """,
    threads=tw.max(128, BN // 16),
    blocks_per_sm=tw.max(1, 512 // tw.max(128, BN // 16)),
)
def layernorm_rows_any(
    X: tw.Tensor(T, M, N),
    gamma: tw.Tensor(T, N),
    beta: tw.Tensor(T, N),
    Y: tw.Tensor(T, M, N),
    eps: tw.scalar(f32),
    T: tw.each(bf16, f32),
    BN: tw.each(256, 512, 1024, 2048, 3072, 4096, 6144, 8192),
):
    """Rows of any length up to BN, one element a lane."""
    tw.assume(N <= BN)
    whole_rows(X, gamma, beta, Y, eps, tw.max(1, 2048 // BN), BN)


@tw.kernel(
    target="sm_90a",
    name="layernorm",
    computes="""
        let mu[m] = mean(n, f32(X[m, n]))
        let variance[m] = mean(n, (f32(X[m, n]) - mu[m]) ** 2)
        Y[m, n] = (f32(X[m, n]) - mu[m]) * rsqrt(variance[m] + eps) * f32(gamma[n]) + f32(beta[n])
    """,
    threads=BN // 16,
    cluster=(C, 1, 1),
)
def layernorm_cluster_any(
    X: tw.Tensor(T, M, N),
    gamma: tw.Tensor(T, N),
    beta: tw.Tensor(T, N),
    Y: tw.Tensor(T, M, N),
    eps: tw.scalar(f32),
    T: tw.each(bf16, f32),
    BN: tw.each(8192),
    C: tw.const(2, 4, 8) = 8,
):
    """BN elements of a row of any length in the registers of each block of a cluster."""
    tw.assume(N <= BN * C)
    row_in_cluster(X, gamma, beta, Y, eps, C, BN)
