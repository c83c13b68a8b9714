"""What the kernels of grouped products share: the order of their tiles, rows that are gathered on their way into a ring, and the product of rows with the weights of their experts.

Weights are the M side of wgmma and rows its N side, so that a tile costs what its own height costs, rounded up to STEP.
"""
import tilewright as tw
from tilewright import bf16, f32

N, K, BATCHES = tw.sizes("N K BATCHES")


@tw.inline
def place(t, columns, TOGETHER):
    """Work item t: tile of rows, tile of weights. The TOGETHER tiles of a batch take turns on each tile of weights, so that a wave of blocks
    reads few rows and few weights, each many times, from L2."""
    batch = t // (TOGETHER * columns)
    turn = t % TOGETHER
    return batch * TOGETHER + turn, t // TOGETHER % columns


@tw.inline
def hand_on(ring, slot, kt, steps, STAGES, LAG):
    """Closes the copies of this step; a slot is full LAG steps after its copies were issued, at the end of a tile all are waited for. While LATE slots wait for
    their copies the consumers hold one, and the producer needs one more: with few slots fewer wait."""
    LATE = tw.min(LAG, STAGES - 2)
    tw.cp_async_commit()
    if kt >= LATE:
        tw.cp_async_wait(LATE)
        ring.commit((slot + STAGES - LATE) % STAGES)
    if kt == steps - 1:
        for i in tw.unroll(LATE):
            if kt >= LATE - 1 - i:
                tw.cp_async_wait(LATE - 1 - i)
                ring.commit((slot + STAGES - (LATE - 1 - i)) % STAGES)


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
        if end > first:
            if STEP == HIGH or end <= first + STEP:
                consume(Y, sX, sW, sY, ring, done, w, first, end, bn * 128 + w * 64, STEP)
            for h in tw.unroll(1, HIGH // STEP):
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
        if end > first:
            if STEP == HIGH or end <= first + STEP:
                held = consume_behind(Y, sX, sW, sY[w], ring, done, w, held, row, stop, column, holds, STEP, HIGH)
            for h in tw.unroll(1, HIGH // STEP):
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
            if end > first:
                e = expert[first]
                if STEP == HIGH or end <= first + STEP:
                    produce(X, W, sX, sW, ring, first, e, bn, STEP)
                for h in tw.unroll(1, HIGH // STEP):
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
