"""The first half of an expert MLP in one kernel for Hopper: gathered rows, gate and up products, SwiGLU."""
import tilewright as tw
from tilewright import bf16, f32, i32

T, P, E, N, K = tw.sizes("T P E N K")


@tw.inline
def place(t, columns, PARTS):
    """Work item t: expert, tile of columns, part. Parts are neighbours (they share the weights in L2) and take turns, so that no
    block of a persistent grid gets the short ones only."""
    return t // (PARTS * columns), t // PARTS % columns, (t + t // PARTS) % PARTS


@tw.inline
def pass_over(ring, steps, together):
    """The 64 rows of this consumer lie beyond the group: the slots go by. No warp may still be waiting for a slot that is given back."""
    for kt in tw.range(steps):
        slot = ring.wait()
        together.sync()
        ring.release()


@tw.inline
def hand_on(ring, slot, kt, steps, STAGES, LAG):
    """Closes the copies of this step; a slot is full LAG steps after its copies were issued, at the end of a tile all are waited for."""
    tw.cp_async_commit()
    if kt >= LAG:
        tw.cp_async_wait(LAG)
        ring.commit((slot + STAGES - LAG) % STAGES)
    if kt == steps - 1:
        for i in tw.unroll(LAG):
            if kt >= LAG - 1 - i:
                tw.cp_async_wait(LAG - 1 - i)
                ring.commit((slot + STAGES - (LAG - 1 - i)) % STAGES)


@tw.inline
def consume(Y, starts, sX, sG, sU, sY, ring, w, C, BN, BK, PARTS):
    """64 rows of every tile: both products, then silu(gate) * up."""
    done = tw.named_barrier(1 + w, 128)
    for t in tw.persistent(E * tw.cdiv(N, BN) * PARTS):
        e, bn, part = place(t, tw.cdiv(N, BN), PARTS)
        first = starts[e]
        end = starts[e + 1]
        for m in tw.range(part, tw.cdiv(end - first, 64 * C), PARTS):
            if first + m * (64 * C) + w * 64 < end:
                gate = tw.zeros(f32, (64, BN))
                up = tw.zeros(f32, (64, BN))
                for kt in tw.range(tw.cdiv(K, BK)):
                    slot = ring.wait()
                    with tw.wgmma_batch():
                        tw.wgmma(gate, sX[slot, w * 64 : (w + 1) * 64, :], sG[slot].T)
                        tw.wgmma(up, sX[slot, w * 64 : (w + 1) * 64, :], sU[slot].T)
                    tw.wgmma_wait(1)
                    ring.release(keep=1)
                tw.wgmma_wait(0)
                ring.release()
                for j in tw.unroll(BN // 32):
                    g = gate[:, j * 32 : (j + 1) * 32]
                    done.sync()
                    tw.store(sY[w], (g / (1.0 + tw.exp(-g)) * up[:, j * 32 : (j + 1) * 32]).to(bf16))
                    done.sync()
                    tw.store(Y[first + m * (64 * C) + w * 64, bn * BN + j * 32], tw.load(sY[w]), limit=(end, None))
            else:
                pass_over(ring, tw.cdiv(K, BK), done)


@tw.kernel(
    target="sm_90a",
    name="gathered_swiglu",
    computes="""
        let g[p, n] = sum(k, f32(X[rows[p], k]) * f32(W[expert[p], 0, n, k]))
        let u[p, n] = sum(k, f32(X[rows[p], k]) * f32(W[expert[p], 1, n, k]))
        Y[p, n] = bf16(g[p, n] / (1 + exp(-g[p, n])) * u[p, n])
    """,
)
def gathered_swiglu(
    X: tw.Tensor(bf16, T, K),
    W: tw.Tensor(bf16, E, 2, N, K),  # gate, then up
    rows: tw.Tensor(i32, P, range=T),  # the token of each row
    expert: tw.Tensor(i32, P),  # the expert of each row; rows are sorted by it
    starts: tw.Tensor(i32, E + 1, offsets_of="expert"),  # the first row of each expert, then P
    Y: tw.Tensor(bf16, P, N),
    C: tw.const(1, 2, 3) = 2,  # consumers of 64 rows each
    BN: tw.const(64, 96, 128) = 128,
    BK: tw.const(64) = 64,
    STAGES: tw.const(2, 3, 4, 5, 6) = 4,
    PARTS: tw.const(1, 2, 3, 4, 6, 8) = 4,
    LAG: tw.const(0, 1, 2, 3, 4) = 2,
):
    """Persistent blocks walk (expert, columns, part). Neither the gathered tokens nor the two products are ever written."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    assert LAG < STAGES, "a slot must be free while LAG of them wait for their copies"
    sX = tw.shared(bf16, (STAGES, 64 * C, BK), swizzle=128)
    sG = tw.shared(bf16, (STAGES, BN, BK), swizzle=128)
    sU = tw.shared(bf16, (STAGES, BN, BK), swizzle=128)
    sY = tw.shared(bf16, (C, 64, 32), swizzle=64)
    ring = tw.pipeline(STAGES, consumers=C, producers=2)
    with tw.warpgroups(0, regs=72, name="producer"):
        for t in tw.persistent(E * tw.cdiv(N, BN) * PARTS):
            e, bn, part = place(t, tw.cdiv(N, BN), PARTS)
            first = starts[e]
            end = starts[e + 1]
            steps = tw.cdiv(K, BK)
            for m in tw.range(part, tw.cdiv(end - first, 64 * C), PARTS):
                token = tw.load(rows[first + m * (64 * C) : first + (m + 1) * (64 * C)], fill=0, limit=(end,))
                for kt in tw.range(steps):
                    slot = ring.acquire()
                    tw.tma_load(sG[slot], W[e, 0, bn * BN, kt * BK], on=ring.full(slot), hint="evict_first")
                    tw.tma_load(sU[slot], W[e, 1, bn * BN, kt * BK], on=ring.full(slot), hint="evict_first")
                    tw.cp_async(sX[slot], X[token, kt * BK : kt * BK + BK])
                    hand_on(ring, slot, kt, steps, STAGES, LAG)
    if C == 1:
        with tw.warpgroups(1, name="consumer") as w:
            consume(Y, starts, sX, sG, sU, sY, ring, w, C, BN, BK, PARTS)
    elif C == 2:
        with tw.warpgroups(1, 2, regs=216, name="consumer") as w:
            consume(Y, starts, sX, sG, sU, sY, ring, w, C, BN, BK, PARTS)
    else:
        with tw.warpgroups(1, 2, 3, regs=144, name="consumer") as w:
            consume(Y, starts, sX, sG, sU, sY, ring, w, C, BN, BK, PARTS)
