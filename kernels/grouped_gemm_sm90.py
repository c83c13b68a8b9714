"""Grouped GEMM for Hopper (mixture of experts): rows sorted by expert, every expert with weights of its own, ragged and empty groups.

The rows are cut into tiles of at most HIGH rows of one expert by a table that comes with them (`tile_table` of bench/suite_inputs.py makes a good
one: nearly equal tiles of multiples of STEP rows). Weights are the M side of wgmma and rows its N side, so that a tile costs what its own
height costs, rounded up to STEP.
"""
import tilewright as tw
from grouped_parts import hand_on, place
from tilewright import bf16, f32, i32

T, P, E, N, K, BATCHES = tw.sizes("T P E N K BATCHES")
TOGETHER, HIGH = tw.parameters("TOGETHER HIGH")

@tw.inline
def produce(X, W, sX, sW, ring, first, e, bn, HIGH):
    """One tile's k blocks: 128 rows of weights, HIGH rows."""
    for kt in tw.range(tw.cdiv(K, 64)):
        slot = ring.acquire()
        tw.tma_load(sW[slot], W[e, bn * 128, kt * 64], on=ring.full(slot), hint="evict_first")
        tw.tma_load(sX[slot, 0:HIGH, :], X[first, kt * 64], on=ring.full(slot), hint="evict_last")


@tw.inline
def produce_gathered(X, W, rows, sX, sW, ring, first, end, e, bn, HIGH, STAGES, LAG):
    """The same with the rows copied one by one; those behind the tile's end are row 0, and never stored."""
    token = tw.load(rows[first : first + HIGH], fill=0, limit=(end,))
    steps = tw.cdiv(K, 64)
    for kt in tw.range(steps):
        slot = ring.acquire()
        tw.tma_load(sW[slot], W[e, bn * 128, kt * 64], on=ring.full(slot), hint="evict_first")
        tw.cp_async(sX[slot, 0:HIGH, :], X[token, kt * 64 : kt * 64 + 64])
        hand_on(ring, slot, kt, steps, STAGES, LAG)


@tw.inline
def consume(Y, sX, sW, sY, ring, done, w, first, end, column, HIGH):
    """64 weights by HIGH rows, stored row by row; `limit` ends the tile where the next expert's rows, or the next tile's, begin."""
    CHUNK = 64 if HIGH % 64 == 0 else 32 if HIGH % 32 == 0 else 16
    acc = tw.zeros(f32, (64, HIGH))
    for kt in tw.range(tw.cdiv(K, 64)):
        slot = ring.wait()
        tw.wgmma(acc, sW[slot, w * 64 : (w + 1) * 64, :], sX[slot, 0:HIGH, :].T)
        tw.wgmma_wait(1)
        ring.release(keep=1)
    tw.wgmma_wait(0)
    ring.release()
    for j in tw.unroll(HIGH // CHUNK):
        done.sync()
        tw.store(sY[w, 0:CHUNK, :].T, acc[:, j * CHUNK : (j + 1) * CHUNK].to(bf16))
        done.sync()
        tw.store(Y[first + j * CHUNK, column], tw.load(sY[w, 0:CHUNK, :]), limit=(end, None))


@tw.inline
def consume_tiles(Y, tile_first, tile_end, sX, sW, sY, ring, w, HIGH, STEP, TOGETHER):
    """All tiles of a block, each stored before the next one begins."""
    done = tw.named_barrier(1 + w, 128)
    for t in tw.persistent(BATCHES * TOGETHER * tw.cdiv(N, 128)):
        i, bn = place(t, tw.cdiv(N, 128), TOGETHER)
        first = tile_first[i]
        end = tile_end[i]
        for h in tw.unroll(HIGH // STEP):
            if end > first + h * STEP:
                if h == HIGH // STEP - 1:
                    consume(Y, sX, sW, sY, ring, done, w, first, end, bn * 128 + w * 64, HIGH)
                elif end <= first + (h + 1) * STEP:
                    consume(Y, sX, sW, sY, ring, done, w, first, end, bn * 128 + w * 64, (h + 1) * STEP)


@tw.inline
def put(Y, sY, done, held, j, UNIT, first, end, column):
    """Stores 64 rows of a tile that waits in eight parts."""
    done.sync()
    for q in tw.unroll(64 // UNIT):
        tw.store(sY[q * UNIT : (q + 1) * UNIT, :].T, held[j * (64 // UNIT) + q])
    done.sync()
    tw.store(Y[first + j * 64, column], tw.load(sY), limit=(end, None))


@tw.inline
def part(acc, i, UNIT, TALL):
    """Rows i * UNIT .. (i + 1) * UNIT of a tile of TALL rows."""
    p = tw.zeros(bf16, (64, UNIT))
    if i * UNIT < TALL:
        p = acc[:, i * UNIT : (i + 1) * UNIT].to(bf16)
    return p


@tw.inline
def consume_behind(Y, sX, sW, sY, ring, done, w, held, first, end, column, holds, TALL, HIGH):
    """64 weights by TALL rows; behind the first k blocks, the tile before is stored. Returns this one's parts."""
    UNIT = HIGH // 8
    acc = tw.zeros(f32, (64, TALL))
    for j in tw.unroll(HIGH // 64):
        slot = ring.wait()
        tw.wgmma(acc, sW[slot, w * 64 : (w + 1) * 64, :], sX[slot, 0:TALL, :].T, zero=j == 0)
        tw.wgmma_wait(1)
        if j > 0:
            ring.release(keep=1)
        if holds == 1:
            put(Y, sY, done, held, j, UNIT, first, end, column)
    for kt in tw.range(HIGH // 64, tw.cdiv(K, 64)):
        slot = ring.wait()
        tw.wgmma(acc, sW[slot, w * 64 : (w + 1) * 64, :], sX[slot, 0:TALL, :].T)
        tw.wgmma_wait(1)
        ring.release(keep=1)
    tw.wgmma_wait(0)
    ring.release()
    parts = ()
    for i in tw.unroll(8):
        parts = parts + (part(acc, i, UNIT, TALL),)
    return parts


@tw.inline
def consume_tiles_behind(Y, tile_first, tile_end, sX, sW, sY, ring, w, HIGH, STEP, TOGETHER):
    """All tiles of a block, each stored behind the next one."""
    UNIT = HIGH // 8
    done = tw.named_barrier(1 + w, 128)
    held = [tw.zeros(bf16, (64, UNIT))] * 8
    row = 0
    stop = 0
    column = 0
    holds = 0
    for t in tw.persistent(BATCHES * TOGETHER * tw.cdiv(N, 128)):
        i, bn = place(t, tw.cdiv(N, 128), TOGETHER)
        first = tile_first[i]
        end = tile_end[i]
        if end <= first:
            if holds == 1:
                for j in tw.unroll(HIGH // 64):
                    put(Y, sY[w], done, held, j, UNIT, row, stop, column)
            held = [tw.zeros(bf16, (64, UNIT))] * 8
        for h in tw.unroll(HIGH // STEP):
            if end > first + h * STEP:
                if h == HIGH // STEP - 1:
                    held = consume_behind(Y, sX, sW, sY[w], ring, done, w, held, row, stop, column, holds, HIGH, HIGH)
                elif end <= first + (h + 1) * STEP:
                    held = consume_behind(Y, sX, sW, sY[w], ring, done, w, held, row, stop, column, holds, (h + 1) * STEP, HIGH)
        row = first
        stop = end
        column = bn * 128 + w * 64
        holds = 1
    if holds == 1:
        for j in tw.unroll(HIGH // 64):
            put(Y, sY[w], done, held, j, UNIT, row, stop, column)


@tw.inline
def rows_of_experts(X, W, expert, tile_first, tile_end, Y, HIGH, STEP, STAGES, TOGETHER, DEFERRED):
    """Persistent blocks walk tiles of rows and of weights; both come by TMA."""
    sX = tw.shared(bf16, (STAGES, HIGH, 64), swizzle=128)
    sW = tw.shared(bf16, (STAGES, 128, 64), swizzle=128)
    sY = tw.shared(bf16, (2, 64, 64), swizzle=128)
    ring = tw.pipeline(STAGES, consumers=2)
    with tw.warpgroups(0, regs=40, name="producer"):
        for t in tw.persistent(BATCHES * TOGETHER * tw.cdiv(N, 128)):
            i, bn = place(t, tw.cdiv(N, 128), TOGETHER)
            first = tile_first[i]
            end = tile_end[i]
            e = expert[first]
            for h in tw.unroll(HIGH // STEP):
                if end > first + h * STEP:
                    if h == HIGH // STEP - 1:
                        produce(X, W, sX, sW, ring, first, e, bn, HIGH)
                    elif end <= first + (h + 1) * STEP:
                        produce(X, W, sX, sW, ring, first, e, bn, (h + 1) * STEP)
    with tw.warpgroups(1, 2, regs=232, name="consumer") as w:
        if DEFERRED and HIGH > 64 and STEP % (HIGH // 8) == 0:  # a tile waits in eight parts
            consume_tiles_behind(Y, tile_first, tile_end, sX, sW, sY, ring, w, HIGH, STEP, TOGETHER)
        else:
            consume_tiles(Y, tile_first, tile_end, sX, sW, sY, ring, w, HIGH, STEP, TOGETHER)


@tw.signature(name="grouped_gemm", target="sm_90a", computes="Y[p, n] = bf16(sum(k, f32(X[p, k]) * f32(W[expert[p], n, k])))")
def grouped(
    X: tw.Tensor(bf16, P, K),
    W: tw.Tensor(bf16, E, N, K),
    expert: tw.Tensor(i32, P, range=E),  # the expert of each row; rows are sorted by it
    tile_first: tw.Tensor(i32, BATCHES * TOGETHER),  # the first row of each tile
    tile_end: tw.Tensor(i32, BATCHES * TOGETHER, tile_ends=("tile_first", HIGH, "expert")),  # the row after its last one
    Y: tw.Tensor(bf16, P, N),
    HIGH: tw.const(64, 128, 256) = 256,  # most rows of a tile
    STEP: tw.const(16, 32, 64) = 32,
    STAGES: tw.const(2, 3, 4, 5, 6, 7, 8) = 4,
    TOGETHER: tw.const(1, 2, 4, 5, 7, 8, 16) = 8,
):
    """Each row with the weights of its expert."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)


@tw.kernel(grouped)
def grouped_gemm_deferred(X, W, expert, tile_first, tile_end, Y, HIGH, STEP, STAGES, TOGETHER):
    """A tile is stored behind the next one's first k blocks, but for low ones, which wait for their weights all the same."""
    tw.assume(K > HIGH)
    rows_of_experts(X, W, expert, tile_first, tile_end, Y, HIGH, STEP, STAGES, TOGETHER, True)


@tw.kernel(grouped)
def grouped_gemm(X, W, expert, tile_first, tile_end, Y, HIGH, STEP, STAGES, TOGETHER):
    """A tile is stored before the next one begins, for any K."""
    rows_of_experts(X, W, expert, tile_first, tile_end, Y, HIGH, STEP, STAGES, TOGETHER, False)


@tw.kernel(target="sm_90a", name="gathered_gemm", computes="Y[p, n] = bf16(sum(k, f32(X[rows[p], k]) * f32(W[expert[p], n, k])))")
def gathered_gemm(
    X: tw.Tensor(bf16, T, K),
    W: tw.Tensor(bf16, E, N, K),
    rows: tw.Tensor(i32, P, range=T),  # the token of each row
    expert: tw.Tensor(i32, P, range=E),  # the expert of each row; rows are sorted by it
    tile_first: tw.Tensor(i32, BATCHES * TOGETHER),  # the first row of each tile
    tile_end: tw.Tensor(i32, BATCHES * TOGETHER, tile_ends=("tile_first", HIGH, "expert")),  # the row behind its last one
    Y: tw.Tensor(bf16, P, N),
    HIGH: tw.const(64, 128, 256) = 256,  # most rows of a tile
    STEP: tw.const(16, 32, 64) = 32,
    STAGES: tw.const(2, 3, 4, 5, 6, 7, 8) = 4,
    TOGETHER: tw.const(1, 2, 4, 5, 7, 8, 16) = 8,
    LAG: tw.const(0, 1, 2, 3, 4) = 2,
):
    """grouped_gemm with the rows gathered on the way by cp.async: the tokens are never copied in global memory."""
    tw.assume(K % 8 == 0)
    tw.assume(N % 8 == 0)
    assert LAG < STAGES, "a slot must be free while LAG of them wait for their copies"
    sX = tw.shared(bf16, (STAGES, HIGH, 64), swizzle=128)
    sW = tw.shared(bf16, (STAGES, 128, 64), swizzle=128)
    sY = tw.shared(bf16, (2, 64, 64), swizzle=128)
    ring = tw.pipeline(STAGES, consumers=2, producers=2)
    with tw.warpgroups(0, regs=88, name="producer"):
        for t in tw.persistent(BATCHES * TOGETHER * tw.cdiv(N, 128)):
            i, bn = place(t, tw.cdiv(N, 128), TOGETHER)
            first = tile_first[i]
            end = tile_end[i]
            e = expert[first]
            for h in tw.unroll(HIGH // STEP):
                if end > first + h * STEP:
                    if h == HIGH // STEP - 1:
                        produce_gathered(X, W, rows, sX, sW, ring, first, end, e, bn, HIGH, STAGES, LAG)
                    elif end <= first + (h + 1) * STEP:
                        produce_gathered(X, W, rows, sX, sW, ring, first, end, e, bn, (h + 1) * STEP, STAGES, LAG)
    with tw.warpgroups(1, 2, regs=208, name="consumer") as w:
        consume_tiles(Y, tile_first, tile_end, sX, sW, sY, ring, w, HIGH, STEP, TOGETHER)
