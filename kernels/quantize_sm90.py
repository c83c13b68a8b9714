"""Rows to fp8 with their scales, alone or after RMSNorm: what gemm_fp8_sm90.py multiplies."""
import tilewright as tw
from tilewright import bf16, e4m3, f32

M, N, NB = tw.sizes("M N NB")
BN = tw.parameters("BN")


@tw.inline
def row_threads(BN):
    """Threads of a block for rows in registers: two vectors of bf16 a thread, four in the longest."""
    return BN // 32 if BN > 8192 else tw.max(128, BN // 16)


@tw.kernel(
    target="sm_90a",
    name="quantize_rows",
    computes="""
        let top[m] = max(n, abs(f32(X[m, n])))
        S[m] = top[m] / 448
        Q[m, n] = e4m3(f32(X[m, n]) * (448 / maximum(top[m], 1.0e-12)))
    """,
    threads=row_threads(BN),
    blocks_per_sm=(1536 if BN <= 8192 else 1024) // row_threads(BN),
)
def quantize_rows(X: tw.Tensor(bf16, M, N), Q: tw.Tensor(e4m3, M, N), S: tw.Tensor(f32, M), BN: tw.each(1024, 2048, 4096, 8192, 16384)):
    """A scale a row: its largest element becomes 448."""
    tw.assume(1 <= N and N <= BN)
    tw.assume(N % 16 == 0)
    m = tw.grid(M)
    x = tw.load(X[m, 0:BN], fill=0.0, layout=tw.blocked(vector=8))
    top = tw.max(tw.abs(x.to(f32)), axis=0)
    tw.store(Q[m, 0:BN], (x.to(f32) * (448.0 / tw.maximum(top, 1.0e-12))).to(e4m3))
    tw.store(S[m], top / 448.0)


@tw.kernel(
    target="sm_90a",
    name="quantize_blocks",
    computes="""
        let top[m, b] = max(n, abs(f32(X[m, b, n])))
        S[b, m] = top[m, b] / 448
        Q[m, b, n] = e4m3(f32(X[m, b, n]) * (448 / maximum(top[m, b], 1.0e-12)))
    """,
    threads=256,
    blocks_per_sm=6,
)
def quantize_blocks(X: tw.Tensor(bf16, M, NB, 128), Q: tw.Tensor(e4m3, M, NB, 128), S: tw.Tensor(f32, NB, M), BM: tw.const(32, 64) = 32):
    """A scale for every 128 elements of a row; scales of one place in all rows are neighbours, as gemm_fp8_blocks reads them."""
    b, bm = tw.grid(NB, tw.cdiv(M, BM))
    x = tw.load(X[bm * BM : bm * BM + BM, b, 0:128], fill=0.0, layout=tw.blocked(vector=8)).to(f32)
    top = tw.max(tw.abs(x), axis=1)
    tw.store(Q[bm * BM : bm * BM + BM, b, 0:128], (x * (448.0 / tw.maximum(top, 1.0e-12))[:, None]).to(e4m3))
    tw.store(S[b, bm * BM : bm * BM + BM], top / 448.0)


@tw.kernel(
    target="sm_90a",
    name="rmsnorm_fp8",
    computes="""
        let s[m, n] = f32(bf16(f32(X[m, n]) + f32(R[m, n])))
        let y[m, n] = s[m, n] * rsqrt(mean(j in 0:N, s[m, j] * s[m, j]) + eps) * f32(gamma[n])
        let top[m] = max(n in 0:N, abs(y[m, n]))
        S[m, n] = s[m, n]
        A[m] = top[m] / 448
        Q[m, n] = e4m3(y[m, n] * (448 / maximum(top[m], 1.0e-12)))
    """,
    threads=tw.max(128, BN // 16),  # with four vectors a thread the longest rows spill
    blocks_per_sm=(1536 if BN <= 8192 else 1024) // tw.max(128, BN // 16),
)
def rmsnorm_fp8(
    X: tw.Tensor(bf16, M, N),
    R: tw.Tensor(bf16, M, N),
    gamma: tw.Tensor(bf16, N),
    S: tw.Tensor(bf16, M, N),
    Q: tw.Tensor(e4m3, M, N),
    A: tw.Tensor(f32, M),
    eps: tw.scalar(f32, positive=True),
    BN: tw.each(1024, 2048, 4096, 8192, 16384),
):
    """The sum with the residual stream, which is written too, normalised and quantised: the next product's input."""
    tw.assume(1 <= N and N <= BN)
    tw.assume(N % 16 == 0)
    m = tw.grid(M)
    s = (tw.load(X[m, 0:BN], fill=0.0, layout=tw.blocked(vector=8)).to(f32) + tw.load(R[m, 0:BN], fill=0.0).to(f32)).to(bf16)
    tw.store(S[m, 0:BN], s)
    x = s.to(f32)
    r = tw.rsqrt(tw.sum(x * x, axis=0) / N + eps)
    y = x * r * tw.load(gamma[0:BN], fill=0.0).to(f32)
    top = tw.max(tw.where(tw.coord(y, 0) < N, tw.abs(y), float("-inf")), axis=0)
    tw.store(Q[m, 0:BN], (y * (448.0 / tw.maximum(top, 1.0e-12))).to(e4m3))
    tw.store(A[m], top / 448.0)
