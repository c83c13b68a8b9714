"""Rows to fp8 with their scales, alone or after RMSNorm: what gemm_fp8_sm90.py multiplies."""
import tilewright as tw
from tilewright import bf16, e4m3, f32

M, N, NB = tw.sizes("M N NB")
BN = tw.parameters("BN")
RUNS = 396  # of rows, one a block: three for each of 132 multiprocessors


@tw.kernel(
    target="sm_90a",
    name="quantize_rows",
    computes="""
        let top[m] = max(n, abs(f32(X[m, n])))
        S[m] = top[m] / 448
        Q[m, n] = e4m3(f32(X[m, n]) * (448 / maximum(top[m], 1.0e-12)))
    """,
    blocks_per_sm=3 if BN <= 8192 else 1,
)
def quantize_rows(X: tw.Tensor(bf16, M, N), Q: tw.Tensor(e4m3, M, N), S: tw.Tensor(f32, M), BN: tw.each(1024, 2048, 4096, 8192, 16384)):
    """A scale a row: its largest element becomes 448. Rows come through a ring."""
    tw.assume(1 <= N and N <= BN)
    tw.assume(N % 16 == 0)
    STAGES = tw.min(8, 32768 // BN)
    first = tw.grid(RUNS) * tw.cdiv(M, RUNS)
    sX = tw.shared(bf16, (STAGES, 1, BN))
    ring = tw.pipeline(STAGES)
    with tw.warpgroups(0, regs=24, name="producer"):
        for i in tw.range(tw.cdiv(M, RUNS)):
            slot = ring.acquire()
            tw.tma_load(sX[slot], X[first + i, 0], on=ring.full(slot), hint="evict_first")
    with tw.warpgroups(1, regs=136 if BN <= 8192 else 240, name="consumer"):
        own = tw.named_barrier(1, 128)
        for i in tw.range(tw.cdiv(M, RUNS)):
            m = first + i
            slot = ring.wait()
            x = tw.load(sX[slot], layout=tw.blocked(vector=8)).to(f32)
            top = tw.max(tw.where(tw.coord(x, 1) < N, tw.abs(x), float("-inf")), axis=1)
            tw.store(S[m : m + 1], top / 448.0)
            x = tw.load(sX[slot], layout=tw.blocked(vector=8)).to(f32)
            tw.store(Q[m : m + 1, 0:BN], (x * (448.0 / tw.maximum(top, 1.0e-12))[:, None]).to(e4m3), hint="streaming")
            own.sync()
            ring.release()


@tw.kernel(
    target="sm_90a",
    name="quantize_blocks",
    computes="""
        let top[m, b] = max(n, abs(f32(X[m, b, n])))
        S[b, m] = top[m, b] / 448
        Q[m, b, n] = e4m3(f32(X[m, b, n]) * (448 / maximum(top[m, b], 1.0e-12)))
    """,
    threads=256,
)
def quantize_blocks(X: tw.Tensor(bf16, M, NB, 128), Q: tw.Tensor(e4m3, M, NB, 128), S: tw.Tensor(f32, NB, M), BM: tw.const(32, 64) = 32):
    """A scale for every 128 elements of a row; scales of one place in all rows are neighbours, as gemm_fp8_blocks reads them."""
    b, bm = tw.grid(NB, tw.cdiv(M, BM))
    x = tw.load(X[bm * BM : bm * BM + BM, b, 0:128], fill=0.0).to(f32)
    top = tw.max(tw.abs(x), axis=1)
    tw.store(S[b, bm * BM : bm * BM + BM], top / 448.0)
    tw.store(Q[bm * BM : bm * BM + BM, b, 0:128], (x * (448.0 / tw.maximum(top, 1.0e-12))[:, None]).to(e4m3))


@tw.inline
def added(x, r):
    """The sum with the residual stream as it is written, made again for each use: it is too long for registers."""
    return (tw.load(x, layout=tw.blocked(vector=8)).to(f32) + tw.load(r, layout=tw.blocked(vector=8)).to(f32)).to(bf16).to(f32)


@tw.inline
def normed(x, r, rstd, gamma, n, WIDE):
    return added(x, r) * rstd[:, None] * tw.load(gamma[n : n + WIDE], fill=0.0, hint="evict_last").to(f32)[None, :]


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
    blocks_per_sm=3 if BN <= 4096 else 2 if BN <= 8192 else 1,
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
    STAGES = 6 if BN <= 2048 else 4 if BN <= 4096 else 3
    WIDE = tw.min(BN, 8192)  # what registers hold of a row at a time
    first = tw.grid(RUNS) * tw.cdiv(M, RUNS)
    sX = tw.shared(bf16, (STAGES, 1, BN))
    sR = tw.shared(bf16, (STAGES, 1, BN))
    ring = tw.pipeline(STAGES)
    with tw.warpgroups(0, regs=24, name="producer"):
        for i in tw.range(tw.cdiv(M, RUNS)):
            slot = ring.acquire()
            tw.tma_load(sX[slot], X[first + i, 0], on=ring.full(slot), hint="evict_first")
            tw.tma_load(sR[slot], R[first + i, 0], on=ring.full(slot), hint="evict_first")
    with tw.warpgroups(1, regs=136 if BN <= 4096 else 232 if BN <= 8192 else 240, name="consumer"):
        own = tw.named_barrier(1, 128)
        for i in tw.range(tw.cdiv(M, RUNS)):
            m = first + i
            slot = ring.wait()
            s = added(sX[slot], sR[slot])
            tw.store(S[m : m + 1, 0:BN], s.to(bf16), hint="streaming")
            r = tw.rsqrt(tw.sum(s * s, axis=1) / N + eps)
            top = tw.full(f32, (1,), float("-inf"))
            for j in tw.unroll(BN // WIDE):
                n = j * WIDE
                y = normed(sX[slot, :, n : n + WIDE], sR[slot, :, n : n + WIDE], r, gamma, n, WIDE)
                top = tw.maximum(top, tw.max(tw.where(tw.coord(y, 1) + n < N, tw.abs(y), float("-inf")), axis=1))
            tw.store(A[m : m + 1], top / 448.0)
            for j in tw.unroll(BN // WIDE):
                n = j * WIDE
                y = normed(sX[slot, :, n : n + WIDE], sR[slot, :, n : n + WIDE], r, gamma, n, WIDE)
                tw.store(Q[m : m + 1, n : n + WIDE], (y * (448.0 / tw.maximum(top, 1.0e-12))[:, None]).to(e4m3), hint="streaming")
            own.sync()
            ring.release()
