"""Gathered rows, gate and up products and SwiGLU of them, for the kernels that begin an expert's MLP.

One consumer multiplies with the gate's weights and one with the up weights, so that each has a full-width wgmma; after the product they exchange halves of the tile through shared memory,
and each finishes one half.
"""
import tilewright as tw
from grouped_parts import hand_on, place
from tilewright import bf16, f32

N, K, BATCHES = tw.sizes("N K BATCHES")


@tw.inline
def produce(X, W, rows, sX, sW, ring, first, end, e, bn, HIGH, STAGES, LAG):
    """One tile's k blocks: 64 rows of the gate's weights, 64 of the up weights, HIGH gathered rows; those behind the end are row 0, never stored."""
    token = tw.load(rows[first : first + HIGH], fill=0, limit=(end,))
    steps = tw.cdiv(K, 64)
    for kt in tw.range(steps):
        slot = ring.acquire()
        tw.tma_load(sW[slot, 0:64, :], W[e, 0, bn * 64, kt * 64], on=ring.full(slot), hint="evict_first")
        tw.tma_load(sW[slot, 64:128, :], W[e, 1, bn * 64, kt * 64], on=ring.full(slot), hint="evict_first")
        tw.cp_async(sX[slot, 0:HIGH, :], X[token, kt * 64 : kt * 64 + 64])
        hand_on(ring, slot, kt, steps, STAGES, LAG)


@tw.inline
def swiglu(gate, up):
    return gate * tw.rcp(1.0 + tw.exp(-gate, approx=True), approx=True) * up


@tw.inline
def consume(Y, sX, sW, sE, sY, ring, own, both, first, end, column, HIGH, MINE):
    """One product (MINE 0: gate, 1: up) of a tile, then the even (gate) or odd (up) halves of its chunks."""
    HALF = 32 if HIGH % 64 == 0 else 16 if HIGH % 32 == 0 else 8
    acc = tw.zeros(f32, (64, HIGH))
    for kt in tw.range(tw.cdiv(K, 64)):
        slot = ring.wait()
        tw.wgmma(acc, sW[slot, MINE * 64 : (MINE + 1) * 64, :], sX[slot, 0:HIGH, :].T)
        tw.wgmma_wait(1)
        ring.release(keep=1)
    tw.wgmma_wait(0)
    ring.release()
    for j in tw.unroll(HIGH // (2 * HALF)):
        kept = (2 * j + MINE) * HALF
        given = (2 * j + 1 - MINE) * HALF
        both.sync()
        tw.store(sE[MINE, :, 0:HALF], acc[:, given : given + HALF])
        both.sync()
        other = tw.load(sE[1 - MINE, :, 0:HALF], layout=tw.wgmma_c())
        if MINE == 0:
            tw.store(sY[MINE, 0:HALF, :].T, swiglu(acc[:, kept : kept + HALF], other).to(bf16))
        else:
            tw.store(sY[MINE, 0:HALF, :].T, swiglu(other, acc[:, kept : kept + HALF]).to(bf16))
        own.sync()
        tw.store(Y[first + kept, column], tw.load(sY[MINE, 0:HALF, :]), limit=(end, None))


@tw.inline
def consume_all(Y, tile_first, tile_end, sX, sW, sE, sY, ring, HIGH, STEP, TOGETHER, MINE):
    own = tw.named_barrier(1 + MINE, 128)
    both = tw.named_barrier(3, 256)
    for t in tw.persistent(BATCHES * TOGETHER * tw.cdiv(N, 64)):
        i, bn = place(t, tw.cdiv(N, 64), TOGETHER)
        first = tile_first[i]
        end = tile_end[i]
        if end > first:
            if STEP == HIGH or end <= first + STEP:
                consume(Y, sX, sW, sE, sY, ring, own, both, first, end, bn * 64, STEP, MINE)
            for h in tw.unroll(1, HIGH // STEP):
                if end > first + h * STEP:
                    if h == HIGH // STEP - 1:
                        consume(Y, sX, sW, sE, sY, ring, own, both, first, end, bn * 64, HIGH, MINE)
                    elif end <= first + (h + 1) * STEP:
                        consume(Y, sX, sW, sE, sY, ring, own, both, first, end, bn * 64, (h + 1) * STEP, MINE)


@tw.inline
def gathered_rows(X, W, rows, expert, tile_first, tile_end, Y, HIGH, STEP, STAGES, TOGETHER, LAG):
    """Persistent blocks walk tiles of rows and of weights. Neither the gathered tokens nor the two products are ever written."""
    sX = tw.shared(bf16, (STAGES, HIGH, 64), swizzle=128)
    sW = tw.shared(bf16, (STAGES, 128, 64), swizzle=128)
    sE = tw.shared(f32, (2, 64, 32), pad=8)
    sY = tw.shared(bf16, (2, 32, 64), swizzle=128)
    ring = tw.pipeline(STAGES, consumers=2, producers=2)
    with tw.warpgroups(0, regs=88, name="producer"):
        for t in tw.persistent(BATCHES * TOGETHER * tw.cdiv(N, 64)):
            i, bn = place(t, tw.cdiv(N, 64), TOGETHER)
            first = tile_first[i]
            end = tile_end[i]
            if end > first:
                e = expert[first]
                if STEP == HIGH or end <= first + STEP:
                    produce(X, W, rows, sX, sW, ring, first, end, e, bn, STEP, STAGES, LAG)
                for h in tw.unroll(1, HIGH // STEP):
                    if end > first + h * STEP:
                        if h == HIGH // STEP - 1:
                            produce(X, W, rows, sX, sW, ring, first, end, e, bn, HIGH, STAGES, LAG)
                        elif end <= first + (h + 1) * STEP:
                            produce(X, W, rows, sX, sW, ring, first, end, e, bn, (h + 1) * STEP, STAGES, LAG)
    with tw.warpgroups(1, regs=208, name="gate"):
        consume_all(Y, tile_first, tile_end, sX, sW, sE, sY, ring, HIGH, STEP, TOGETHER, 0)
    with tw.warpgroups(2, regs=208, name="up"):
        consume_all(Y, tile_first, tile_end, sX, sW, sE, sY, ring, HIGH, STEP, TOGETHER, 1)
