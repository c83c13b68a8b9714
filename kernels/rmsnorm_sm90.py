"""Root-mean-square normalisation over rows, alone or of the sum with a residual stream. Rows that fit the registers of a block or the
shared memory of a cluster are read once; longer ones twice."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")
BYTES, T, ROW, C, BN = tw.parameters("BYTES T ROW C BN")

@tw.inline
def whole_rows(X, gamma, Y, eps, BM, BN):
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], fill=0.0).to(f32)
    g = tw.load(gamma[0:BN], fill=0.0)
    scale = tw.rsqrt(tw.sum(x * x, axis=1) / N + eps)
    tw.store(Y[m : m + BM, 0:BN], (x * scale[:, None] * g.to(f32)[None, :]).to(Y.dtype))


@tw.inline
def across(state, C):
    """The sum over the cluster of each block's number in `state`."""
    tw.cluster_sync()
    total = tw.zeros(f32, ())
    for r in tw.range(C, unroll=True):
        total = total + tw.load(state, rank=r)
    return total


@tw.inline
def staged(X, s, m, n, K, BN):
    """This block's part of the row, K chunks of BN elements from n on, into shared memory; outside the row it is zero. Every thread reads what it
    copied, so nobody waits for anybody."""
    for k in tw.range(K):
        tw.cp_async(s[k], X[m, n + k * BN : n + k * BN + BN])
    tw.cp_async_commit()
    tw.cp_async_wait(0)


@tw.inline
def row_in_shared(X, gamma, Y, eps, T, C, K, BN):
    rank, m = tw.grid(C, M)
    n0 = rank * K * BN
    s = tw.shared(T, (K, BN))
    squares = tw.shared(f32, (1,))
    staged(X, s, m, n0, K, BN)
    sums = tw.zeros(f32, (BN,))
    for k in tw.range(K, unroll=2):
        x = tw.load(s[k]).to(f32)
        sums = sums + x * x
    tw.store(squares[0], tw.sum(sums, axis=0))
    scale = tw.rsqrt(across(squares[0], C) / N + eps)
    for k in tw.range(K, unroll=2):
        n = n0 + k * BN
        g = tw.load(gamma[n : n + BN], fill=0.0)
        tw.store(Y[m, n : n + BN], (tw.load(s[k]).to(f32) * scale * g.to(f32)).to(Y.dtype))


@tw.inline
def row_twice(X, gamma, Y, eps, C, BN, V):
    rank, m = tw.grid(C, M)
    squares = tw.shared(f32, (1,))
    rounds = tw.cdiv(N, BN * C)
    sums = tw.zeros(f32, (BN,))
    for c in tw.range(rounds):
        n = rank * rounds * BN + c * BN
        x = tw.load(X[m, n : n + BN], fill=0.0, layout=tw.blocked(vector=V)).to(f32)
        sums = sums + x * x
    tw.store(squares[0], tw.sum(sums, axis=0))
    scale = tw.rsqrt(across(squares[0], C) / N + eps)
    for c in tw.range(rounds):
        n = rank * rounds * BN + c * BN
        x = tw.load(X[m, n : n + BN], fill=0.0, layout=tw.blocked(vector=V)).to(f32)
        g = tw.load(gamma[n : n + BN], fill=0.0)
        tw.store(Y[m, n : n + BN], (x * scale * g.to(f32)).to(Y.dtype))


@tw.inline
def whole_rows_residual(X, R, gamma, S, Y, eps, BM, BN):
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], fill=0.0)
    r = tw.load(R[m : m + BM, 0:BN], fill=0.0)
    g = tw.load(gamma[0:BN], fill=0.0)
    s = (x.to(f32) + r.to(f32)).to(S.dtype)
    tw.store(S[m : m + BM, 0:BN], s)
    wide = s.to(f32)
    scale = tw.rsqrt(tw.sum(wide * wide, axis=1) / N + eps)
    tw.store(Y[m : m + BM, 0:BN], (wide * scale[:, None] * g.to(f32)[None, :]).to(Y.dtype))


@tw.inline
def row_shape(BYTES):
    """Threads of a block and blocks of a multiprocessor for rows in registers."""
    wide = BYTES > 16384 or BYTES % 4096 != 0 and BYTES > 4096
    threads = BYTES // 64 if wide else tw.max(128, BYTES // 32)
    return tw.record(threads=threads, blocks=(1024 if wide else 1536) // threads)


@tw.signature(computes="Y[m, n] = f32(X[m, n]) * rsqrt(mean(j, f32(X[m, j]) * f32(X[m, j])) + eps) * f32(gamma[n])")
def rmsnorm(X: tw.Tensor(T, M, N), gamma: tw.Tensor(T, N), Y: tw.Tensor(T, M, N), eps: tw.scalar(f32), T: tw.each(bf16, f32)):
    """Rows over the root of their mean square, scaled by column."""


@tw.kernel(rmsnorm, target="sm_80", threads=row_shape(BYTES).threads, blocks_per_sm=row_shape(BYTES).blocks)
def rmsnorm_rows(X, gamma, Y, eps, T, BYTES: tw.each(256, 512, 1024, 2048, 4096, 6144, 8192, 10240, 12288, 16384, 20480, 24576, 32768)):
    """Rows of up to BYTES bytes in registers: two vectors of 16 bytes a thread (four in the larger ones), one row a block or several short ones."""
    BN = BYTES // T.bytes
    tw.assume(N <= BN)
    tw.assume(N % (16 // T.bytes) == 0)
    whole_rows(X, gamma, Y, eps, tw.max(1, 4096 // BYTES), BN)


@tw.kernel(rmsnorm, target="sm_90a", threads=256 if ROW <= 524288 else 512, cluster=(tw.min(8, ROW // 32768), 1, 1), blocks_per_sm=221184 // (ROW // tw.min(8, ROW // 32768)))
def rmsnorm_staged(X, gamma, Y, eps, T, ROW: tw.each(65536, 131072, 262144, 524288, 851968, 1638400)):
    """Rows of up to ROW bytes in the shared memory of a cluster; blocks of other rows compute while this one's row arrives."""
    C = tw.min(8, ROW // 32768)
    CHUNK = 4096 if ROW <= 524288 else 8192
    tw.assume(N <= ROW // T.bytes)
    tw.assume(N % (16 // T.bytes) == 0)
    row_in_shared(X, gamma, Y, eps, T, C, ROW // C // CHUNK, CHUNK // T.bytes)


@tw.kernel(rmsnorm, target="sm_90a", threads=512, cluster=(C, 1, 1), blocks_per_sm=2)
def rmsnorm_twice(X, gamma, Y, eps, T, C: tw.const(2, 4, 8) = 8):
    """Rows of any length of whole vectors, read for the sum of squares and read again to be written."""
    tw.assume(N % (16 // T.bytes) == 0)
    row_twice(X, gamma, Y, eps, C, 16384 // T.bytes, 16 // T.bytes)


@tw.kernel(rmsnorm, target="sm_80", threads=tw.max(128, BN // 16), blocks_per_sm=tw.max(1, 768 // tw.max(128, BN // 16)))
def rmsnorm_rows_any(X, gamma, Y, eps, T, BN: tw.each(256, 512, 1024, 2048, 3072, 4096, 6144, 8192)):
    """Rows of any length up to BN, one element a lane."""
    tw.assume(N <= BN)
    whole_rows(X, gamma, Y, eps, tw.max(1, 2048 // BN), BN)


@tw.kernel(rmsnorm, target="sm_90a", threads=512, cluster=(C, 1, 1))
def rmsnorm_twice_any(X, gamma, Y, eps, T, C: tw.const(2, 4, 8) = 8):
    """Rows of any length and alignment, read twice."""
    row_twice(X, gamma, Y, eps, C, 8192, 1)


@tw.signature(
    target="sm_80",
    computes="""
        let s[m, n] = f32(T(f32(X[m, n]) + f32(R[m, n])))
        S[m, n] = s[m, n]
        Y[m, n] = s[m, n] * rsqrt(mean(j in 0:N, s[m, j] * s[m, j]) + eps) * f32(gamma[n])
    """,
)
def rmsnorm_residual(X: tw.Tensor(T, M, N), R: tw.Tensor(T, M, N), gamma: tw.Tensor(T, N), S: tw.Tensor(T, M, N), Y: tw.Tensor(T, M, N), eps: tw.scalar(f32), T: tw.each(bf16, f32)):
    """The same of the sum with a residual stream, which is written too: it is the next layer's residual."""


@tw.kernel(rmsnorm_residual, threads=tw.min(1024, tw.max(128, BYTES // 32)), blocks_per_sm=tw.max(1, 1280 // tw.max(128, BYTES // 32)))
def rmsnorm_residual_rows(X, R, gamma, S, Y, eps, T, BYTES: tw.each(512, 1024, 2048, 4096, 8192, 16384, 32768)):
    """Rows of up to BYTES bytes in registers."""
    BN = BYTES // T.bytes
    tw.assume(N <= BN)
    tw.assume(N % (16 // T.bytes) == 0)
    whole_rows_residual(X, R, gamma, S, Y, eps, tw.max(1, 4096 // BYTES), BN)


@tw.kernel(rmsnorm_residual, threads=tw.max(128, BN // 16))
def rmsnorm_residual_any(X, R, gamma, S, Y, eps, T, BN: tw.each(256, 1024, 4096, 8192)):
    """Rows of any length up to BN, one element a lane."""
    tw.assume(N <= BN)
    whole_rows_residual(X, R, gamma, S, Y, eps, tw.max(1, 2048 // BN), BN)
