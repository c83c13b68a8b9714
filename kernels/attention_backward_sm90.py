"""Backward of attention for Hopper. The probabilities are made again from the log-sum-exp of the forward pass, in one of two ways.

`attention_backward`: one launch goes through the queries for each tile of keys, keeps DK and DV in registers and adds the tile's part of DQ to memory, in f32 and in no fixed order: five
products, the least there are, and last bits of DQ that differ from run to run. `attention_backward_in_order`: no sum is added to memory, and each gradient has a launch that owns it, one through
the keys for each tile of queries (DQ), one through the queries for each tile of keys (DK, DV): seven products, the same bits in every run."""
import tilewright as tw
from tilewright import bf16, f32

B, H, S, T, D = tw.sizes("B H S T D")
LOG2E = 1.4426950408889634
LN2 = 0.6931471805599453


@tw.kernel(
    target="sm_90a",
    name="attention_delta",
    computes="DELTA[b, h, i] = sum(d, f32(O[b, h, i, d]) * f32(DO[b, h, i, d]))",
    threads=256,
)
def attention_delta(O: tw.Tensor(bf16, B, H, S, D), DO: tw.Tensor(bf16, B, H, S, D), DELTA: tw.Tensor(f32, B, H, S), W: tw.each(64, 128)):
    """What every probability's gradient is taken less by."""
    tw.assume(D <= W)
    tw.assume(D % 8 == 0)
    i, h, b = tw.grid(tw.cdiv(S, 64), H, B)
    o = tw.load(O[b, h, i * 64 : i * 64 + 64, 0:W], fill=0.0).to(f32)
    g = tw.load(DO[b, h, i * 64 : i * 64 + 64, 0:W], fill=0.0).to(f32)
    tw.store(DELTA[b, h, i * 64 : i * 64 + 64], tw.sum(o * g, axis=1))


@tw.kernel(
    target="sm_90a",
    name="attention_before_gradients",
    computes="""
        DELTA[b, h, i] = sum(d, f32(O[b, h, i, d]) * f32(DO[b, h, i, d]))
        LOG[b, h, i] = LSE[b, h, i] * LOG2E
        SUM[b, h, i, d] = 0
    """,
    threads=256,
)
def attention_before_gradients(
    O: tw.Tensor(bf16, B, H, S, D), LSE: tw.Tensor(f32, B, H, S), DO: tw.Tensor(bf16, B, H, S, D),
    DELTA: tw.Tensor(f32, B, H, S), LOG: tw.Tensor(f32, B, H, S), SUM: tw.Tensor(f32, B, H, S, D), W: tw.each(64, 128),
):
    """What every probability's gradient is taken less by, the log-sum-exp in powers of two, and zeros to add to."""
    tw.assume(D <= W)
    tw.assume(D % 8 == 0)
    i, h, b = tw.grid(tw.cdiv(S, 64), H, B)
    o = tw.load(O[b, h, i * 64 : i * 64 + 64, 0:W], fill=0.0).to(f32)
    g = tw.load(DO[b, h, i * 64 : i * 64 + 64, 0:W], fill=0.0).to(f32)
    tw.store(DELTA[b, h, i * 64 : i * 64 + 64], tw.sum(o * g, axis=1))
    tw.store(LOG[b, h, i * 64 : i * 64 + 64], tw.load(LSE[b, h, i * 64 : i * 64 + 64], fill=0.0) * LOG2E)
    tw.store(SUM[b, h, i * 64 : i * 64 + 64, 0:W], tw.zeros(f32, (64, W)))


@tw.kernel(target="sm_90a", name="attention_after_gradients", computes="DQ[b, h, i, d] = bf16(scale * SUM[b, h, i, d])", threads=256)
def attention_after_gradients(SUM: tw.Tensor(f32, B, H, S, D), DQ: tw.Tensor(bf16, B, H, S, D), scale: tw.scalar(f32, positive=True), W: tw.each(64, 128)):
    """Scaled and rounded."""
    tw.assume(D <= W)
    tw.assume(D % 8 == 0)
    i, h, b = tw.grid(tw.cdiv(S, 64), H, B)
    tw.store(DQ[b, h, i * 64 : i * 64 + 64, 0:W], (tw.load(SUM[b, h, i * 64 : i * 64 + 64, 0:W], fill=0.0) * scale).to(bf16))


@tw.inline
def all_gradients(Q, K, V, DO, LOG, DELTA, SUM, DK, DV, scale, W, EVEN, SECTION, STAGES, CAUSAL):
    """128 keys a block, two consumers of 64; queries and their gradients come through a ring. Scores are computed with keys as rows; their gradients go through shared memory,
    and each consumer multiplies all of them by half of the columns of the keys (of 64 columns: half of the rows by all), for the sums of DQ."""
    BQ = 8192 // W
    sK = tw.shared(bf16, (128, W), swizzle=128)
    sV = tw.shared(bf16, (128, W), swizzle=128)
    sQ = tw.shared(bf16, (STAGES, BQ, W), swizzle=128)
    sG = tw.shared(bf16, (STAGES, BQ, W), swizzle=128)
    sL = tw.shared(f32, (STAGES, BQ))
    sE = tw.shared(f32, (STAGES, BQ))
    sS = tw.shared(bf16, (2, 128, BQ), swizzle=128)
    sA = tw.shared(f32, (2, 64, 64), swizzle=128)
    rows = tw.pipeline(1, consumers=2)
    ring = tw.pipeline(STAGES, consumers=2)
    if SECTION == 1:
        bk, h, b = tw.grid(tw.cdiv(T, 128), H, B)
    else:
        x, bk, y = tw.grid(SECTION, tw.cdiv(T, 128), H // SECTION * B)
        h = y % (H // SECTION) * SECTION + x
        b = y // (H // SECTION)
    first = bk * 128 // BQ if CAUSAL else 0
    with tw.warpgroups(0, regs=24, name="producer"):
        r = rows.acquire()
        tw.tma_load(sK, K[b, h, bk * 128, 0], on=rows.full(r))
        tw.tma_load(sV, V[b, h, bk * 128, 0], on=rows.full(r))
        for i in tw.range(first, tw.cdiv(S, BQ)):
            slot = ring.acquire()
            tw.tma_load(sQ[slot], Q[b, h, i * BQ, 0], on=ring.full(slot))
            tw.tma_load(sL[slot], LOG[b, h, i * BQ], on=ring.full(slot))
            tw.tma_load(sG[slot], DO[b, h, i * BQ, 0], on=ring.full(slot))
            tw.tma_load(sE[slot], DELTA[b, h, i * BQ], on=ring.full(slot))
    with tw.warpgroups(1, 2, regs=240, name="consumer") as w:
        both = tw.named_barrier(1, 256)
        own = tw.named_barrier(2 + w, 128)
        row = bk * 128 + w * 64
        dk = tw.zeros(f32, (64, W))
        dv = tw.zeros(f32, (64, W))
        s = tw.zeros(f32, (64, BQ))
        dp = tw.zeros(f32, (64, BQ))
        dq = tw.zeros(f32, (64, 64))
        rows.wait()
        for i in tw.range(first, tw.cdiv(S, BQ)):
            slot = ring.wait()
            tw.wgmma(s, sK[w * 64 : (w + 1) * 64, :], sQ[slot].T, zero=True)
            tw.wgmma(dp, sV[w * 64 : (w + 1) * 64, :], sG[slot].T, zero=True)
            tw.wgmma_wait(1)
            lse = tw.load(sL[slot])
            # Rows beyond the last query are zeros throughout, and add nothing; of a key beyond the last one the probability may be infinite.
            p = tw.exp2(s * (scale * LOG2E) - lse[None, :])
            if CAUSAL and EVEN:
                p = tw.where(tw.coord(s, 0) + row <= tw.coord(s, 1) + i * BQ, p, 0.0)
            elif CAUSAL:
                p = tw.where((tw.coord(s, 0) + row <= tw.coord(s, 1) + i * BQ) & (tw.coord(s, 0) < T - row), p, 0.0)
            elif not EVEN:
                p = tw.where(tw.coord(s, 0) < T - row, p, 0.0)
            tw.wgmma_wait(0)
            delta = tw.load(sE[slot])
            ds = (p * (dp - delta[None, :])).to(bf16)
            tw.store(sS[i % 2, w * 64 : (w + 1) * 64, :], ds)
            tw.wgmma(dv, p.to(bf16), sG[slot])
            tw.fence_async()
            tw.tma_store_wait(0, read=True)
            both.sync()
            if W == 128:
                tw.wgmma(dq, sS[i % 2].T, sK[:, w * 64 : (w + 1) * 64], zero=True)
            else:
                tw.wgmma(dq, sS[i % 2, :, w * 64 : (w + 1) * 64].T, sK, zero=True)
            tw.wgmma(dk, ds, sQ[slot])
            tw.wgmma_wait(1)
            tw.store(sA[w], dq)
            tw.fence_async()
            own.sync()
            if W == 128:
                tw.tma_reduce_add(SUM[b, h, i * BQ, w * 64], sA[w])
            else:
                tw.tma_reduce_add(SUM[b, h, i * BQ + w * 64, 0], sA[w])
            tw.tma_store_commit()
            tw.wgmma_wait(0)
            ring.release()
        rows.release()
        tw.tma_store_wait(0)
        tw.store(DK[b, h, row, 0], (dk * scale).to(bf16))
        tw.store(DV[b, h, row, 0], dv.to(bf16))


@tw.inline
def queries_gradient(Q, K, V, DO, LSE, DELTA, DQ, scale, W, BN, STAGES, CAUSAL):
    """128 rows of queries a block, two consumers of 64; keys and values come through a ring."""
    sQ = tw.shared(bf16, (128, W), swizzle=128)
    sG = tw.shared(bf16, (128, W), swizzle=128)
    sK = tw.shared(bf16, (STAGES, BN, W), swizzle=128)
    sV = tw.shared(bf16, (STAGES, BN, W), swizzle=128)
    rows = tw.pipeline(1, consumers=2)
    ring = tw.pipeline(STAGES, consumers=2)
    bq, h, b = tw.grid(tw.cdiv(S, 128), H, B)
    steps = tw.cdiv(tw.min(T, bq * 128 + 128), BN) if CAUSAL else tw.cdiv(T, BN)
    with tw.warpgroups(0, regs=24, name="producer"):
        r = rows.acquire()
        tw.tma_load(sQ, Q[b, h, bq * 128, 0], on=rows.full(r))
        tw.tma_load(sG, DO[b, h, bq * 128, 0], on=rows.full(r))
        for i in tw.range(steps):
            slot = ring.acquire()
            tw.tma_load(sK[slot], K[b, h, i * BN, 0], on=ring.full(slot))
            tw.tma_load(sV[slot], V[b, h, i * BN, 0], on=ring.full(slot))
    with tw.warpgroups(1, 2, regs=240, name="consumer") as w:
        row = bq * 128 + w * 64
        lse = tw.load(LSE[b, h, row : row + 64], fill=0.0) * LOG2E
        delta = tw.load(DELTA[b, h, row : row + 64], fill=0.0)
        acc = tw.zeros(f32, (64, W))
        s = tw.zeros(f32, (64, BN))
        dp = tw.zeros(f32, (64, BN))
        rows.wait()
        for i in tw.range(steps):
            slot = ring.wait()
            tw.wgmma(s, sQ[w * 64 : (w + 1) * 64, :], sK[slot].T, zero=True)
            tw.wgmma(dp, sG[w * 64 : (w + 1) * 64, :], sV[slot].T, zero=True)
            tw.wgmma_wait(0)
            p = tw.exp2(s * (scale * LOG2E) - lse[:, None])
            ds = p * (dp - delta[:, None])
            seen = (tw.coord(s, 1) + i * BN <= tw.coord(s, 0) + row) & (tw.coord(s, 1) + i * BN < T) if CAUSAL else tw.coord(s, 1) < T - i * BN
            tw.wgmma(acc, tw.where(seen, ds, 0.0).to(bf16), sK[slot])
            tw.wgmma_wait(0)
            ring.release()
        rows.release()
        tw.store(DQ[b, h, row, 0], (acc * scale).to(bf16))


@tw.inline
def keys_gradient(Q, K, V, DO, LSE, DELTA, DK, DV, scale, W, BQ, STAGES, CAUSAL):
    """128 keys a block, two consumers of 64; queries and their gradients come through a ring. Scores are computed with keys as rows."""
    sK = tw.shared(bf16, (128, W), swizzle=128)
    sV = tw.shared(bf16, (128, W), swizzle=128)
    sQ = tw.shared(bf16, (STAGES, BQ, W), swizzle=128)
    sG = tw.shared(bf16, (STAGES, BQ, W), swizzle=128)
    rows = tw.pipeline(1, consumers=2)
    ring = tw.pipeline(STAGES, consumers=2)
    bk, h, b = tw.grid(tw.cdiv(T, 128), H, B)
    first = bk * 128 // BQ if CAUSAL else 0
    with tw.warpgroups(0, regs=24, name="producer"):
        r = rows.acquire()
        tw.tma_load(sK, K[b, h, bk * 128, 0], on=rows.full(r))
        tw.tma_load(sV, V[b, h, bk * 128, 0], on=rows.full(r))
        for i in tw.range(first, tw.cdiv(S, BQ)):
            slot = ring.acquire()
            tw.tma_load(sQ[slot], Q[b, h, i * BQ, 0], on=ring.full(slot))
            tw.tma_load(sG[slot], DO[b, h, i * BQ, 0], on=ring.full(slot))
    with tw.warpgroups(1, 2, regs=240, name="consumer") as w:
        row = bk * 128 + w * 64
        dk = tw.zeros(f32, (64, W))
        dv = tw.zeros(f32, (64, W))
        s = tw.zeros(f32, (64, BQ))
        dp = tw.zeros(f32, (64, BQ))
        rows.wait()
        for i in tw.range(first, tw.cdiv(S, BQ)):
            lse = tw.load(LSE[b, h, i * BQ : i * BQ + BQ], fill=0.0) * LOG2E
            delta = tw.load(DELTA[b, h, i * BQ : i * BQ + BQ], fill=0.0)
            slot = ring.wait()
            tw.wgmma(s, sK[w * 64 : (w + 1) * 64, :], sQ[slot].T, zero=True)
            tw.wgmma(dp, sV[w * 64 : (w + 1) * 64, :], sG[slot].T, zero=True)
            tw.wgmma_wait(0)
            seen = (tw.coord(s, 0) + row <= tw.coord(s, 1) + i * BQ) & (tw.coord(s, 1) + i * BQ < S) if CAUSAL else tw.coord(s, 1) < S - i * BQ
            p = tw.where(seen, tw.exp2(s * (scale * LOG2E) - lse[None, :]), 0.0)
            ds = p * (dp - delta[None, :])
            tw.wgmma(dv, p.to(bf16), sG[slot])
            tw.wgmma(dk, ds.to(bf16), sQ[slot])
            tw.wgmma_wait(0)
            ring.release()
        rows.release()
        tw.store(DK[b, h, row, 0], (dk * scale).to(bf16))
        tw.store(DV[b, h, row, 0], dv.to(bf16))


# What all kernels share: the probabilities, and the gradients of the scores; with the log-sum-exp in natural units or in powers of two.
PROBABILITIES = "\n    let p[b, h, i, j] = exp(scale * sum(d, f32(Q[b, h, i, d]) * f32(K[b, h, j, d])) - "
OF_SCORES = """
    let g[b, h, i, j] = p[b, h, i, j] * (sum(d, f32(DO[b, h, i, d]) * f32(V[b, h, j, d])) - DELTA[b, h, i])
"""
GRADIENTS = PROBABILITIES + "LSE[b, h, i])" + OF_SCORES
GRADIENTS_OF_LOG = PROBABILITIES + "LN2 * LOG[b, h, i])" + OF_SCORES
DELTAS = "let DELTA[b, h, i] = sum(d, f32(O[b, h, i, d]) * f32(DO[b, h, i, d]))"
OF_QUERIES = "DQ[b, h, i, d] = bf16(scale * sum(j, f32(bf16(g[b, h, i, j])) * f32(K[b, h, j, d])))"
OF_KEYS = """
    DK[b, h, j, d] = bf16(scale * sum(i, f32(bf16(g[b, h, i, j])) * f32(Q[b, h, i, d])))
    DV[b, h, j, d] = bf16(sum(i, f32(bf16(p[b, h, i, j])) * f32(DO[b, h, i, d])))
"""
SUMS_OF_QUERIES = "SUM[b, h, i, d] += sum(j, f32(bf16(g[b, h, i, j])) * f32(K[b, h, j, d]))"
CAUSAL_OF_QUERIES = "DQ[b, h, i, d] = bf16(scale * sum(j in 0:minimum(T, i + 1), f32(bf16(g[b, h, i, j])) * f32(K[b, h, j, d])))"
CAUSAL_SUMS_OF_QUERIES = "SUM[b, h, i, d] += sum(j in 0:minimum(T, i + 1), f32(bf16(g[b, h, i, j])) * f32(K[b, h, j, d]))"
CAUSAL_OF_KEYS = """
    DK[b, h, j, d] = bf16(scale * sum(i in j:S, f32(bf16(g[b, h, i, j])) * f32(Q[b, h, i, d])))
    DV[b, h, j, d] = bf16(sum(i in j:S, f32(bf16(p[b, h, i, j])) * f32(DO[b, h, i, d])))
"""


@tw.signature(target="sm_90a")
def gradient_q(
    Q: tw.Tensor(bf16, B, H, S, D), K: tw.Tensor(bf16, B, H, T, D), V: tw.Tensor(bf16, B, H, T, D), DO: tw.Tensor(bf16, B, H, S, D),
    LSE: tw.Tensor(f32, B, H, S), DELTA: tw.Tensor(f32, B, H, S), DQ: tw.Tensor(bf16, B, H, S, D), scale: tw.scalar(f32, positive=True),
    W: tw.each(64, 128), BN: tw.const(64, 128) = 64, STAGES: tw.const(2, 3, 4) = 2,
):
    """The gradient of the queries."""
    tw.assume(D <= W)
    tw.assume(D % 8 == 0)


@tw.signature(target="sm_90a")
def gradient_kv(
    Q: tw.Tensor(bf16, B, H, S, D), K: tw.Tensor(bf16, B, H, T, D), V: tw.Tensor(bf16, B, H, T, D), DO: tw.Tensor(bf16, B, H, S, D),
    LSE: tw.Tensor(f32, B, H, S), DELTA: tw.Tensor(f32, B, H, S), DK: tw.Tensor(bf16, B, H, T, D), DV: tw.Tensor(bf16, B, H, T, D),
    scale: tw.scalar(f32, positive=True), W: tw.each(64, 128), BQ: tw.const(64, 128) = 64, STAGES: tw.const(2, 3, 4) = 2,
):
    """The gradients of keys and values."""
    tw.assume(D <= W)
    tw.assume(D % 8 == 0)


@tw.kernel(gradient_q, name="attention_gradient_q", computes=GRADIENTS + OF_QUERIES)
def attention_gradient_q(Q, K, V, DO, LSE, DELTA, DQ, scale, W, BN, STAGES):
    """Every query attends to every key."""
    queries_gradient(Q, K, V, DO, LSE, DELTA, DQ, scale, W, BN, STAGES, 0)


@tw.kernel(gradient_kv, name="attention_gradient_kv", computes=GRADIENTS + OF_KEYS)
def attention_gradient_kv(Q, K, V, DO, LSE, DELTA, DK, DV, scale, W, BQ, STAGES):
    """Every query attends to every key."""
    keys_gradient(Q, K, V, DO, LSE, DELTA, DK, DV, scale, W, BQ, STAGES, 0)


@tw.kernel(gradient_q, name="attention_causal_gradient_q", computes=GRADIENTS + CAUSAL_OF_QUERIES)
def attention_causal_gradient_q(Q, K, V, DO, LSE, DELTA, DQ, scale, W, BN, STAGES):
    """Query i attends to keys 0 to i."""
    queries_gradient(Q, K, V, DO, LSE, DELTA, DQ, scale, W, BN, STAGES, 1)


@tw.kernel(gradient_kv, name="attention_causal_gradient_kv", computes=GRADIENTS + CAUSAL_OF_KEYS)
def attention_causal_gradient_kv(Q, K, V, DO, LSE, DELTA, DK, DV, scale, W, BQ, STAGES):
    """Query i attends to keys 0 to i."""
    keys_gradient(Q, K, V, DO, LSE, DELTA, DK, DV, scale, W, BQ, STAGES, 1)


@tw.signature(target="sm_90a")
def gradients(
    Q: tw.Tensor(bf16, B, H, S, D), K: tw.Tensor(bf16, B, H, T, D), V: tw.Tensor(bf16, B, H, T, D), DO: tw.Tensor(bf16, B, H, S, D),
    LOG: tw.Tensor(f32, B, H, S), DELTA: tw.Tensor(f32, B, H, S), SUM: tw.Tensor(f32, B, H, S, D), DK: tw.Tensor(bf16, B, H, T, D), DV: tw.Tensor(bf16, B, H, T, D),
    scale: tw.scalar(f32, positive=True), W: tw.each(64, 128), EVEN: tw.each(1, 0), SECTION: tw.each(16, 8, 1), STAGES: tw.const(2, 3) = 2,
):
    """All three, those of the queries added to SUM. EVEN: whole tiles of keys, and no mask."""
    tw.assume(D <= W)
    tw.assume(D % 8 == 0)
    tw.assume(S % 4 == 0)
    tw.assume(T % (128 if EVEN else 1) == 0)
    tw.assume(H % SECTION == 0)


@tw.kernel(gradients, name="attention_gradients", computes=GRADIENTS_OF_LOG + SUMS_OF_QUERIES + OF_KEYS)
def attention_gradients(Q, K, V, DO, LOG, DELTA, SUM, DK, DV, scale, W, EVEN, SECTION, STAGES):
    """Every query attends to every key."""
    all_gradients(Q, K, V, DO, LOG, DELTA, SUM, DK, DV, scale, W, EVEN, SECTION, STAGES, 0)


@tw.kernel(gradients, name="attention_causal_gradients", computes=GRADIENTS_OF_LOG + CAUSAL_SUMS_OF_QUERIES + CAUSAL_OF_KEYS)
def attention_causal_gradients(Q, K, V, DO, LOG, DELTA, SUM, DK, DV, scale, W, EVEN, SECTION, STAGES):
    """Query i attends to keys 0 to i."""
    all_gradients(Q, K, V, DO, LOG, DELTA, SUM, DK, DV, scale, W, EVEN, SECTION, STAGES, 1)


@tw.signature()
def backward(
    Q: tw.Tensor(bf16, B, H, S, D), K: tw.Tensor(bf16, B, H, T, D), V: tw.Tensor(bf16, B, H, T, D), O: tw.Tensor(bf16, B, H, S, D),
    LSE: tw.Tensor(f32, B, H, S), DO: tw.Tensor(bf16, B, H, S, D),
    DQ: tw.Tensor(bf16, B, H, S, D), DK: tw.Tensor(bf16, B, H, T, D), DV: tw.Tensor(bf16, B, H, T, D), scale: tw.scalar(f32, positive=True),
):
    """All three gradients."""


@tw.program(backward, name="attention_backward", computes=DELTAS + GRADIENTS + OF_QUERIES + OF_KEYS)
def attention_backward(Q, K, V, O, LSE, DO, DQ, DK, DV, scale):
    """Every query attends to every key."""
    DELTA = tw.buffer(f32, B, H, S)
    LOG = tw.buffer(f32, B, H, S)
    SUM = tw.buffer(f32, B, H, S, D)
    attention_before_gradients(O, LSE, DO, DELTA, LOG, SUM)
    attention_gradients(Q, K, V, DO, LOG, DELTA, SUM, DK, DV, scale)
    attention_after_gradients(SUM, DQ, scale)


@tw.program(backward, name="attention_causal_backward", computes=DELTAS + GRADIENTS + CAUSAL_OF_QUERIES + CAUSAL_OF_KEYS)
def attention_causal_backward(Q, K, V, O, LSE, DO, DQ, DK, DV, scale):
    """Query i attends to keys 0 to i."""
    DELTA = tw.buffer(f32, B, H, S)
    LOG = tw.buffer(f32, B, H, S)
    SUM = tw.buffer(f32, B, H, S, D)
    attention_before_gradients(O, LSE, DO, DELTA, LOG, SUM)
    attention_causal_gradients(Q, K, V, DO, LOG, DELTA, SUM, DK, DV, scale)
    attention_after_gradients(SUM, DQ, scale)


@tw.program(backward, name="attention_backward_in_order", computes=DELTAS + GRADIENTS + OF_QUERIES + OF_KEYS)
def attention_backward_in_order(Q, K, V, O, LSE, DO, DQ, DK, DV, scale):
    """Every query attends to every key."""
    DELTA = tw.buffer(f32, B, H, S)
    attention_delta(O, DO, DELTA)
    attention_gradient_q(Q, K, V, DO, LSE, DELTA, DQ, scale)
    attention_gradient_kv(Q, K, V, DO, LSE, DELTA, DK, DV, scale)


@tw.program(backward, name="attention_causal_backward_in_order", computes=DELTAS + GRADIENTS + CAUSAL_OF_QUERIES + CAUSAL_OF_KEYS)
def attention_causal_backward_in_order(Q, K, V, O, LSE, DO, DQ, DK, DV, scale):
    """Query i attends to keys 0 to i."""
    DELTA = tw.buffer(f32, B, H, S)
    attention_delta(O, DO, DELTA)
    attention_causal_gradient_q(Q, K, V, DO, LSE, DELTA, DQ, scale)
    attention_causal_gradient_kv(Q, K, V, DO, LSE, DELTA, DK, DV, scale)
