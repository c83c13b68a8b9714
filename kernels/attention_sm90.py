"""Flash attention forward for Hopper: keys and values stream through two rings, the scores of the next key tile are computed
while the probabilities of the present one are made, and neither ever leaves the registers. Grouped-query heads, any lengths."""
import tilewright as tw
from tilewright import bf16, f16, f32

B, HK, S, T = tw.sizes("B HK S T")
LN2 = 0.6931471805599453
DT, G, D = tw.parameters("DT G D")

@tw.inline
def mark_of(top, scale):
    """What exponentials are relative to: the running maximum rounded up to a multiple of 8 powers of two. It rarely moves, and
    where it does not, nothing has to be rescaled. Finite even for a row that has seen no key yet."""
    return tw.ceil(tw.maximum(top, -1.0e30) * scale * 0.125) * 8.0


@tw.inline
def seen(s, row, key, CAUSAL):
    """Which of the scores of rows from `row` and keys from `key` count."""
    return (tw.coord(s, 1) + key <= row + tw.coord(s, 0)) & (tw.coord(s, 1) + key < T) if CAUSAL else tw.coord(s, 1) < T - key


@tw.inline
def produce(Q, K, V, sQ, sK, sV, queries, keys, values, b, h, row, tiles, G, BN):
    """Loads the keys of one tile and the query rows, then keys and values in the order of their use, from the last tile of keys to the first."""
    ks = keys.acquire()
    tw.tma_load(sK[ks], K[b, h // G, (tiles - 1) * BN, 0], on=keys.full(ks))
    qs = queries.acquire()  # the rows come second: their slot is the last to be free
    tw.tma_load(sQ[qs], Q[b, h, row, 0], on=queries.full(qs))
    for i in tw.range(1, tiles):
        ks = keys.acquire()
        tw.tma_load(sK[ks], K[b, h // G, (tiles - 1 - i) * BN, 0], on=keys.full(ks))
        vs = values.acquire()
        tw.tma_load(sV[vs], V[b, h // G, (tiles - i) * BN, 0], on=values.full(vs))
    vs = values.acquire()
    tw.tma_load(sV[vs], V[b, h // G, 0, 0], on=values.full(vs))


@tw.inline
def careful(Q, K, V, scale, b, h, row, end, D, G, CAUSAL):
    """The same 64 rows key by key from global memory, relative to their maximum: right for any scores, and slow."""
    q = tw.load(Q[b, h, row : row + 64, 0:D], fill=0.0, layout=tw.wgmma_c())
    top = tw.full(f32, (64,), float("-inf"))
    for j in tw.range(0, end, unroll=False):
        s = tw.sum(q.to(f32) * tw.load(K[b, h // G, j, 0:D]).to(f32)[None, :], axis=1)
        top = tw.maximum(top, tw.where(j <= row + tw.coord(s, 0), s, float("-inf")) if CAUSAL else s)
    total = tw.zeros(f32, (64,))
    out = tw.zeros(f32, (64, D))
    for j in tw.range(0, end, unroll=False):
        s = tw.sum(q.to(f32) * tw.load(K[b, h // G, j, 0:D]).to(f32)[None, :], axis=1)
        e = tw.exp2((s - top) * scale)
        if CAUSAL:
            e = tw.where(j <= row + tw.coord(s, 0), e, 0.0)
        total = total + e
        out = out + e[:, None] * tw.load(V[b, h // G, j, 0:D]).to(f32)[None, :]
    inverse = 1.0 / total
    return out * inverse[:, None], top * scale + tw.log2(total)


@tw.inline
def place(t, columns, G):
    """The t-th of `columns` items of each head: batch, head, item. Blocks of one head are neighbours, so that its keys and values stay in L2."""
    return t // (columns * (HK * G)), t // columns % (HK * G), t % columns


@tw.inline
def rising(t, n, D, G):
    """Causal: sections of heads whose keys and values have 32 MiB and stay in L2. In a section, tiles of even number from short to long, then those of odd number
    from long to short: dealt out to the blocks in turn, all get about the same amount of work."""
    section = tw.min(tw.max(1, 2**23 // D // T) * G, B * (HK * G))
    first = t // (section * n) * section
    heads = tw.min(section, B * (HK * G) - first)
    k = (t - first * n) // heads
    head = first + (t - first * n) % heads
    return head // (HK * G), head % (HK * G), tw.min(2 * k, 2 * (n - k) - 1)


@tw.inline
def key_tiles(bq, C, BN, CAUSAL, DIAGONAL):
    return (bq + 1) * (64 * C // BN) if DIAGONAL else tw.min(tw.cdiv((bq + 1) * (64 * C), BN), tw.cdiv(T, BN)) if CAUSAL else tw.cdiv(T, BN)


@tw.inline
def produce_all(Q, K, V, sQ, sK, sV, queries, keys, values, D, G, C, BN, CAUSAL, DIAGONAL):
    for t in tw.persistent(tw.cdiv(S, 64 * C) * (HK * G) * B):
        b, h, bq = rising(t, tw.cdiv(S, 64 * C), D, G) if CAUSAL else place(t, tw.cdiv(S, 64 * C), G)
        produce(Q, K, V, sQ, sK, sV, queries, keys, values, b, h, bq * (64 * C), key_tiles(bq, C, BN, CAUSAL, DIAGONAL), G, BN)


@tw.inline
def finish(Q, K, V, O, LSE, out, mark, total, scale, b, h, row, D, G, CAUSAL, STAY, DT):
    """Divides by the sums and stores."""
    inverse = 1.0 / total
    lse = mark + tw.log2(total)
    # A probability may have left its type, or its sums with values a float (a NaN is not below anything).
    lost = (((total > 1.0e30) | (total < 1.0e-30))[:, None] | ~(tw.abs(out) < 1.0e37)) if DT == bf16 else total > 3.0e4
    out = out * inverse[:, None]
    if STAY:
        if tw.any(lost):
            out, lse = careful(Q, K, V, scale, b, h, row, tw.min(T, row + 64) if CAUSAL else T, D, G, CAUSAL)
    tw.store(O[b, h, row, 0], out.to(DT))
    tw.store(LSE[b, h, row : row + 64], lse * LN2)


@tw.inline
def consume_all(Q, K, V, O, LSE, scale, sQ, sK, sV, queries, keys, values, w, D, G, C, BN, QSTAGES, CAUSAL, STAY, DT):
    """64 rows of every tile. Keys go from the last tile to the first, so that those that need a mask come first. A step computes the scores
    of one key tile and adds the values of the tile before, so that the matrix unit works while the exponentials are made."""
    diagonal = CAUSAL and BN < 64 * C  # it crosses more than the last key tile
    out = tw.zeros(f32, (64, D))
    s = tw.zeros(f32, (64, BN))
    p = tw.zeros(DT, (64, BN))
    mark = tw.zeros(f32, (64,))
    total = tw.zeros(f32, (64,))
    for t in tw.persistent(tw.cdiv(S, 64 * C) * (HK * G) * B):
        b, h, bq = rising(t, tw.cdiv(S, 64 * C), D, G) if CAUSAL else place(t, tw.cdiv(S, 64 * C), G)
        row = bq * (64 * C) + w * 64
        tiles = key_tiles(bq, C, BN, CAUSAL, 0)
        qs = queries.wait()
        ks = keys.wait()
        tw.wgmma(s, sQ[qs, w * 64 : (w + 1) * 64, :], sK[ks].T, zero=True)
        tw.wgmma_wait(0)
        if STAY and DT == bf16:
            top = tw.max(s, axis=1)  # of keys that a row does not see too: it may see none of this tile
        else:
            top = tw.max(tw.where(seen(s, row, (tiles - 1) * BN, CAUSAL), s, float("-inf")), axis=1)
        first_mark = mark_of(top, scale)
        e = tw.where(seen(s, row, (tiles - 1) * BN, CAUSAL), tw.exp2(s * scale - first_mark[:, None]), 0.0)
        first_total = tw.sum(e, axis=1)
        keys.release()
        p = e.to(DT)
        out = tw.zeros(f32, (64, D))
        mark = first_mark
        total = first_total
        for i in tw.range(1, tiles):
            ks = keys.wait()
            tw.wgmma(s, sQ[qs, w * 64 : (w + 1) * 64, :], sK[ks].T, zero=True)
            vs = values.wait()
            tw.wgmma(out, p, sV[vs])
            tw.wgmma_wait(1)
            if QSTAGES == 1 and i == tiles - 1:
                queries.release()  # a step before the end: the rows of the next tile come meanwhile
            if STAY:
                e = tw.exp2(s * scale - mark[:, None])
            else:
                highest = tw.max(s, axis=1)
                if diagonal:
                    if (tiles - i) * BN > tw.min(T, row + 1):
                        highest = tw.max(tw.where(seen(s, row, (tiles - 1 - i) * BN, CAUSAL), s, float("-inf")), axis=1)
                next_top = tw.maximum(top, highest)
                mark = mark_of(next_top, scale)
                e = tw.exp2(s * scale - mark[:, None])
                alpha = tw.exp2(mark_of(top, scale) - mark)
                top = next_top
                total = total * alpha
            if diagonal:
                if (tiles - i) * BN > tw.min(T, row + 1):
                    e = tw.where(seen(s, row, (tiles - 1 - i) * BN, CAUSAL), e, 0.0)
            total = total + tw.sum(e, axis=1)
            keys.release()  # after the sums: the exponentials end before the wait for the values begins
            tw.wgmma_wait(0)
            values.release()
            if not STAY:
                out = out * alpha[:, None]
            p = e.to(DT)
        queries.release()
        if not STAY:
            mark = mark_of(top, scale)
        vs = values.wait()
        tw.wgmma(out, p, sV[vs])
        tw.wgmma_wait(0)
        values.release()
        finish(Q, K, V, O, LSE, out, mark, total, scale, b, h, row, D, G, CAUSAL, STAY, DT)


@tw.inline
def below(s, row, key):
    """Which of the scores of rows from `row` and keys from `key` do not lie behind the diagonal."""
    return tw.coord(s, 1) + key <= row + tw.coord(s, 0)


@tw.inline
def consume_diagonal(Q, K, V, O, LSE, scale, sQ, sK, sV, queries, keys, values, w, D, G, C, BN, QSTAGES, TURNS, STAY, DT):
    """64 rows of every tile, causal, where T >= S and the 64 C rows of a tile meet the diagonal in whole key tiles. Those come first, one by one: a consumer
    passes over those behind all its rows, and the loop over the key tiles before the diagonal has no mask in it."""
    WIDTH = 64 * C // BN  # key tiles across the diagonal
    group = tw.named_barrier(1 + w, 128)  # a slot that no product reads is given back when all four warps have seen it full
    turn = tw.named_barrier(4 + w, 256)  # this consumer's turn, and that of the next
    after = tw.named_barrier(4 + (w + 1) % C, 256)
    out = tw.zeros(f32, (64, D))
    s = tw.zeros(f32, (64, BN))
    p = tw.zeros(DT, (64, BN))
    top = tw.zeros(f32, (64,))
    mark = tw.zeros(f32, (64,))
    total = tw.zeros(f32, (64,))
    for t in tw.persistent(tw.cdiv(S, 64 * C) * (HK * G) * B):
        b, h, bq = rising(t, tw.cdiv(S, 64 * C), D, G)
        row = bq * (64 * C) + w * 64
        tiles = key_tiles(bq, C, BN, 1, 1)
        out = tw.zeros(f32, (64, D))
        p = tw.zeros(DT, (64, BN))
        top = tw.full(f32, (64,), float("-inf"))
        total = tw.zeros(f32, (64,))
        qs = queries.wait()
        for j in tw.unroll(WIDTH):
            key = (tiles - 1 - j) * BN
            ks = keys.wait()
            if (WIDTH - 1 - j) * BN < w * 64 + 64:
                tw.wgmma(s, sQ[qs, w * 64 : (w + 1) * 64, :], sK[ks].T, zero=True)
                if j == 0:
                    tw.wgmma_wait(0)
                else:
                    vs = values.wait()
                    if (WIDTH - j) * BN < w * 64 + 64:  # the key tile before was one of this consumer's
                        tw.wgmma(out, p, sV[vs])
                        tw.wgmma_wait(1)
                    else:
                        tw.wgmma_wait(0)
                        group.sync()
                if j == 0 or STAY:
                    if j == 0 or (WIDTH - j) * BN >= w * 64 + 64:
                        # A bf16 reference that stays is of keys that a row does not see too: it may see none of this tile.
                        top = tw.max(s, axis=1) if STAY and DT == bf16 else tw.max(tw.where(below(s, row, key), s, float("-inf")), axis=1)
                        mark = mark_of(top, scale)
                else:
                    next_top = tw.maximum(top, tw.max(tw.where(below(s, row, key), s, float("-inf")), axis=1))
                    mark = mark_of(next_top, scale)
                    alpha = tw.exp2(mark_of(top, scale) - mark)
                    top = next_top
                    total = total * alpha
                e = tw.where(below(s, row, key), tw.exp2(s * scale - mark[:, None]), 0.0)
                total = total + tw.sum(e, axis=1)
                keys.release()
                if j > 0:
                    tw.wgmma_wait(0)
                    values.release()
                    if not STAY:
                        out = out * alpha[:, None]
                p = e.to(DT)
            else:
                if j > 0:
                    vs = values.wait()
                group.sync()
                keys.release()
                if j > 0:
                    values.release()
        for i in tw.range(WIDTH, tiles):
            ks = keys.wait()
            if TURNS and (w > 0 or i > WIDTH):
                turn.sync()
            tw.wgmma(s, sQ[qs, w * 64 : (w + 1) * 64, :], sK[ks].T, zero=True)
            vs = values.wait()
            tw.wgmma(out, p, sV[vs])
            if TURNS and (w < C - 1 or i < tiles - 1):
                after.arrive()
            tw.wgmma_wait(1)
            if QSTAGES == 1 and i == tiles - 1:
                queries.release()
            if STAY:
                e = tw.exp2(s * scale - mark[:, None])
            else:
                next_top = tw.maximum(top, tw.max(s, axis=1))
                mark = mark_of(next_top, scale)
                e = tw.exp2(s * scale - mark[:, None])
                alpha = tw.exp2(mark_of(top, scale) - mark)
                top = next_top
                total = total * alpha
            total = total + tw.sum(e, axis=1)
            keys.release()
            tw.wgmma_wait(0)
            values.release()
            if not STAY:
                out = out * alpha[:, None]
            p = e.to(DT)
        queries.release()
        if not STAY:
            mark = mark_of(top, scale)
        vs = values.wait()
        tw.wgmma(out, p, sV[vs])
        tw.wgmma_wait(0)
        values.release()
        finish(Q, K, V, O, LSE, out, mark, total, scale, b, h, row, D, G, 1, STAY, DT)


@tw.inline
def consume(Q, K, V, O, LSE, scale, sQ, sK, sV, queries, keys, values, w, D, G, C, BN, QSTAGES, CAUSAL, DIAGONAL, TURNS, STAY, DT):
    if DIAGONAL:
        consume_diagonal(Q, K, V, O, LSE, scale, sQ, sK, sV, queries, keys, values, w, D, G, C, BN, QSTAGES, TURNS, STAY, DT)
    else:
        consume_all(Q, K, V, O, LSE, scale, sQ, sK, sV, queries, keys, values, w, D, G, C, BN, QSTAGES, CAUSAL, STAY, DT)


@tw.inline
def attend(Q, K, V, O, LSE, scale, D, G, C, BN, STAGES, QSTAGES, CAUSAL, DIAGONAL, TURNS, STAY, DT):
    """Persistent blocks walk tiles of 64 C query rows: one thread loads, C warpgroups of 64 rows compute."""
    sQ = tw.shared(DT, (QSTAGES, 64 * C, D), swizzle=128)
    sK = tw.shared(DT, (STAGES, BN, D), swizzle=128)
    sV = tw.shared(DT, (STAGES, BN, D), swizzle=128)
    queries = tw.pipeline(QSTAGES, consumers=C)
    keys = tw.pipeline(STAGES, consumers=C)
    values = tw.pipeline(STAGES, consumers=C)
    # A reference that stays is the maximum of the first key tile. bf16 has the range of f32, so that scores of keys that a row does not see may take
    # part; f16 has little room above its reference and none below. At D = 256 the careful way would need more registers than there are.
    stay = STAY >= (1 if DT == bf16 else 2) and D < 256 and (DT == bf16 or BN >= 64 * C or not CAUSAL or DIAGONAL and BN == 64)
    with tw.warpgroups(0, regs=24 if C == 2 else 32, name="producer"):
        produce_all(Q, K, V, sQ, sK, sV, queries, keys, values, D, G, C, BN, CAUSAL, DIAGONAL)
    if C == 2:
        with tw.warpgroups(1, 2, regs=240, name="consumer") as w:
            consume(Q, K, V, O, LSE, scale, sQ, sK, sV, queries, keys, values, w, D, G, C, BN, QSTAGES, CAUSAL, DIAGONAL, TURNS, stay, DT)
    else:
        with tw.warpgroups(1, 2, 3, regs=160, name="consumer") as w:
            consume(Q, K, V, O, LSE, scale, sQ, sK, sV, queries, keys, values, w, D, G, C, BN, QSTAGES, CAUSAL, DIAGONAL, TURNS, stay, DT)


@tw.kernel(
    target="sm_90a",
    name="attention",
    computes="""
        let s[b, h, i, j] = scale * LN2 * sum(d, f32(Q[b, h, i, d]) * f32(K[b, h // G, j, d]))
        O[b, h, i, d] = DT(sum(j, f32(DT(exp(s[b, h, i, j]))) * f32(V[b, h // G, j, d])) / sum(j, exp(s[b, h, i, j])))
        LSE[b, h, i] = logsumexp(j, s[b, h, i, j])
    """,
)
def attention(
    Q: tw.Tensor(DT, B, HK * G, S, D),
    K: tw.Tensor(DT, B, HK, T, D),
    V: tw.Tensor(DT, B, HK, T, D),
    O: tw.Tensor(DT, B, HK * G, S, D),
    LSE: tw.Tensor(f32, B, HK * G, S),
    scale: tw.scalar(f32, positive=True),  # softmax scale times log2(e)
    DT: tw.each(bf16, f16),
    D: tw.const(64, 128, 256) = 128,
    G: tw.const(1, 2, 4, 8) = 1,
    C: tw.const(2, 3) = 2,
    BN: tw.const(64, 80, 96, 112, 128) = 128,
    STAGES: tw.const(2, 3, 4) = 2,
    QSTAGES: tw.const(1, 2) = 2,
    STAY: tw.const(0, 1, 2) = 1,  # the reference of the exponentials stays: never, in bf16, in f16 too
):
    """Every query attends to every key."""
    tw.assume(T >= 1)
    attend(Q, K, V, O, LSE, scale, D, G, C, BN, STAGES, QSTAGES, 0, 0, 0, STAY, DT)


@tw.kernel(
    target="sm_90a",
    name="attention_causal",
    computes="""
        let s[b, h, i, j] = scale * LN2 * sum(d, f32(Q[b, h, i, d]) * f32(K[b, h // G, j, d]))
        O[b, h, i, d] = DT(sum(j in 0:minimum(T, i + 1), f32(DT(exp(s[b, h, i, j]))) * f32(V[b, h // G, j, d])) / sum(j in 0:minimum(T, i + 1), exp(s[b, h, i, j])))
        LSE[b, h, i] = logsumexp(j in 0:minimum(T, i + 1), s[b, h, i, j])
    """,
)
def attention_causal(
    Q: tw.Tensor(DT, B, HK * G, S, D),
    K: tw.Tensor(DT, B, HK, T, D),
    V: tw.Tensor(DT, B, HK, T, D),
    O: tw.Tensor(DT, B, HK * G, S, D),
    LSE: tw.Tensor(f32, B, HK * G, S),
    scale: tw.scalar(f32, positive=True),  # softmax scale times log2(e)
    DT: tw.each(bf16, f16),
    DIAGONAL: tw.each(1, 0),  # as many keys as queries or more: every row meets the diagonal
    D: tw.const(64, 128, 256) = 128,
    G: tw.const(1, 2, 4, 8) = 1,
    C: tw.const(2, 3) = 2,
    BN: tw.const(64, 80, 96, 112, 128) = 128,
    STAGES: tw.const(2, 3, 4) = 2,
    QSTAGES: tw.const(1, 2) = 2,
    TURNS: tw.const(0, 1) = 0,  # before the diagonal, consumers issue their products one after another
    STAY: tw.const(0, 1, 2) = 1,  # the reference of the exponentials stays: never, in bf16, in f16 too
):
    """Query i attends to keys 0 to i."""
    tw.assume(T >= 1)
    if DIAGONAL:
        tw.assume(S <= T)
    # Where T < S may be, a diagonal across several tiles of 64 keys is not proved: 80.
    attend(Q, K, V, O, LSE, scale, D, G, C, BN if DIAGONAL or BN > 64 else 80, STAGES, QSTAGES, 1, DIAGONAL and 64 * C % BN == 0, TURNS, STAY, DT)
