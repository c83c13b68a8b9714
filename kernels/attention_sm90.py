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
def produce_step(a, b, h, tiles, i):
    """The i-th key tile from the end, and the values of the one before it."""
    ks = a.keys.acquire()
    tw.tma_load(a.sK[ks], a.K[b, h // a.G, (tiles - 1 - i) * a.BN, 0], on=a.keys.full(ks))
    vs = a.values.acquire()
    tw.tma_load(a.sV[vs], a.V[b, h // a.G, (tiles - i) * a.BN, 0], on=a.values.full(vs))


@tw.inline
def produce(a, b, h, row, tiles):
    """Loads the keys of one tile and the query rows, then keys and values in the order of their use, from the last tile of keys to the first."""
    ks = a.keys.acquire()
    tw.tma_load(a.sK[ks], a.K[b, h // a.G, (tiles - 1) * a.BN, 0], on=a.keys.full(ks))
    qs = a.queries.acquire()  # the rows come second: their slot is the last to be free
    tw.tma_load(a.sQ[qs], a.Q[b, h, row, 0], on=a.queries.full(qs))
    WIDTH = 64 * a.C // a.BN if a.DIAGONAL else 1  # key tiles that consumers take before their loop
    for i in tw.unroll(1, WIDTH):
        produce_step(a, b, h, tiles, i)
    for i in tw.range(WIDTH, tiles):
        produce_step(a, b, h, tiles, i)
    vs = a.values.acquire()
    tw.tma_load(a.sV[vs], a.V[b, h // a.G, 0, 0], on=a.values.full(vs))


@tw.inline
def careful(a, b, h, row, end):
    """The same 64 rows key by key from global memory, relative to their maximum: right for any scores, and slow."""
    q = tw.load(a.Q[b, h, row : row + 64, 0:a.D], fill=0.0, layout=tw.wgmma_c())
    top = tw.full(f32, (64,), float("-inf"))
    for j in tw.range(0, end, unroll=False):
        s = tw.sum(q.to(f32) * tw.load(a.K[b, h // a.G, j, 0:a.D]).to(f32)[None, :], axis=1)
        top = tw.maximum(top, tw.where(j <= row + tw.coord(s, 0), s, float("-inf")) if a.CAUSAL else s)
    total = tw.zeros(f32, (64,))
    out = tw.zeros(f32, (64, a.D))
    for j in tw.range(0, end, unroll=False):
        s = tw.sum(q.to(f32) * tw.load(a.K[b, h // a.G, j, 0:a.D]).to(f32)[None, :], axis=1)
        e = tw.exp2((s - top) * a.scale)
        if a.CAUSAL:
            e = tw.where(j <= row + tw.coord(s, 0), e, 0.0)
        total = total + e
        out = out + e[:, None] * tw.load(a.V[b, h // a.G, j, 0:a.D]).to(f32)[None, :]
    inverse = 1.0 / total
    return out * inverse[:, None], top * a.scale + tw.log2(total)


@tw.inline
def place(t, columns, a):
    """The t-th of `columns` items of each head: batch, head, item. Blocks of one head are neighbours, so that its keys and values stay in L2."""
    return t // (columns * (HK * a.G)), t // columns % (HK * a.G), t % columns


@tw.inline
def rising(t, n, a):
    """Causal: sections of heads whose keys and values have 32 MiB and stay in L2. In a section, tiles of even number from short to long, then those of odd number
    from long to short: dealt out to the blocks in turn, all get about the same amount of work."""
    section = tw.min(tw.max(1, 2**23 * a.G // a.D // T), B * (HK * a.G))
    first = t // (section * n) * section
    heads = tw.min(section, B * (HK * a.G) - first)
    k = (t - first * n) // heads
    head = first + (t - first * n) % heads
    return head // (HK * a.G), head % (HK * a.G), tw.min(2 * k, 2 * (n - k) - 1)


@tw.inline
def key_tiles(bq, a):
    return (bq + 1) * (64 * a.C // a.BN) if a.DIAGONAL else tw.min(tw.cdiv((bq + 1) * (64 * a.C), a.BN), tw.cdiv(T, a.BN)) if a.CAUSAL else tw.cdiv(T, a.BN)


@tw.inline
def produce_all(a):
    for t in tw.persistent(tw.cdiv(S, 64 * a.C) * (HK * a.G) * B):
        b, h, bq = rising(t, tw.cdiv(S, 64 * a.C), a) if a.CAUSAL else place(t, tw.cdiv(S, 64 * a.C), a)
        produce(a, b, h, bq * (64 * a.C), key_tiles(bq, a))


@tw.inline
def finish(a, out, mark, total, b, h, row):
    """Divides by the sums and stores."""
    inverse = 1.0 / total
    lse = mark + tw.log2(total)
    # A probability may have left its type, or its sums with values a float (a NaN is not below anything).
    lost = (((total > 1.0e30) | (total < 1.0e-30))[:, None] | ~(tw.abs(out) < 1.0e37)) if a.DT == bf16 else total > 3.0e4
    out = out * inverse[:, None]
    if a.STAY:
        if tw.any(lost):
            out, lse = careful(a, b, h, row, tw.min(T, row + 64) if a.CAUSAL else T)
    tw.store(a.O[b, h, row, 0], out.to(a.DT))
    tw.store(a.LSE[b, h, row : row + 64], lse * LN2)


@tw.inline
def consume_all(a, w):
    """64 rows of every tile. Keys go from the last tile to the first, so that those that need a mask come first. A step computes the scores
    of one key tile and adds the values of the tile before, so that the matrix unit works while the exponentials are made."""
    diagonal = a.CAUSAL and a.BN < 64 * a.C  # it crosses more than the last key tile
    out = tw.zeros(f32, (64, a.D))
    s = tw.zeros(f32, (64, a.BN))
    p = tw.zeros(a.DT, (64, a.BN))
    mark = tw.zeros(f32, (64,))
    total = tw.zeros(f32, (64,))
    for t in tw.persistent(tw.cdiv(S, 64 * a.C) * (HK * a.G) * B):
        b, h, bq = rising(t, tw.cdiv(S, 64 * a.C), a) if a.CAUSAL else place(t, tw.cdiv(S, 64 * a.C), a)
        row = bq * (64 * a.C) + w * 64
        tiles = key_tiles(bq, a)
        qs = a.queries.wait()
        ks = a.keys.wait()
        tw.wgmma(s, a.sQ[qs, w * 64 : (w + 1) * 64, :], a.sK[ks].T, zero=True)
        tw.wgmma_wait(0)
        if a.STAY and a.DT == bf16:
            top = tw.max(s, axis=1)  # of keys that a row does not see too: it may see none of this tile
        else:
            top = tw.max(tw.where(seen(s, row, (tiles - 1) * a.BN, a.CAUSAL), s, float("-inf")), axis=1)
        first_mark = mark_of(top, a.scale)
        e = tw.where(seen(s, row, (tiles - 1) * a.BN, a.CAUSAL), tw.exp2(s * a.scale - first_mark[:, None]), 0.0)
        first_total = tw.sum(e, axis=1)
        a.keys.release()
        p = e.to(a.DT)
        out = tw.zeros(f32, (64, a.D))
        mark = first_mark
        total = first_total
        for i in tw.range(1, tiles):
            ks = a.keys.wait()
            tw.wgmma(s, a.sQ[qs, w * 64 : (w + 1) * 64, :], a.sK[ks].T, zero=True)
            vs = a.values.wait()
            tw.wgmma(out, p, a.sV[vs])
            tw.wgmma_wait(1)
            if a.STAY:
                e = tw.exp2(s * a.scale - mark[:, None])
            else:
                highest = tw.max(s, axis=1)
                if diagonal:
                    if (tiles - i) * a.BN > tw.min(T, row + 1):
                        highest = tw.max(tw.where(seen(s, row, (tiles - 1 - i) * a.BN, a.CAUSAL), s, float("-inf")), axis=1)
                next_top = tw.maximum(top, highest)
                mark = mark_of(next_top, a.scale)
                e = tw.exp2(s * a.scale - mark[:, None])
                alpha = tw.exp2(mark_of(top, a.scale) - mark)
                top = next_top
                total = total * alpha
            if diagonal:
                if (tiles - i) * a.BN > tw.min(T, row + 1):
                    e = tw.where(seen(s, row, (tiles - 1 - i) * a.BN, a.CAUSAL), e, 0.0)
            total = total + tw.sum(e, axis=1)
            a.keys.release()  # after the sums: the exponentials end before the wait for the values begins
            tw.wgmma_wait(0)
            a.values.release()
            if not a.STAY:
                out = out * alpha[:, None]
            p = e.to(a.DT)
        a.queries.release()
        if not a.STAY:
            mark = mark_of(top, a.scale)
        vs = a.values.wait()
        tw.wgmma(out, p, a.sV[vs])
        tw.wgmma_wait(0)
        a.values.release()
        finish(a, out, mark, total, b, h, row)


@tw.inline
def below(s, row, key):
    """Which of the scores of rows from `row` and keys from `key` do not lie behind the diagonal."""
    return tw.coord(s, 1) + key <= row + tw.coord(s, 0)


@tw.inline
def consume_diagonal(a, w):
    """64 rows of every tile, causal, where T >= S and the 64 C rows of a tile meet the diagonal in whole key tiles. Those come first, one by one: a consumer
    passes over those behind all its rows, and the loop over the key tiles before the diagonal has no mask in it."""
    WIDTH = 64 * a.C // a.BN  # key tiles across the diagonal
    group = tw.named_barrier(1 + w, 128)  # a slot that no product reads is given back when all four warps have seen it full
    turn = tw.named_barrier(4 + w, 256)  # this consumer's turn, and that of the next
    after = tw.named_barrier(4 + (w + 1) % a.C, 256)
    out = tw.zeros(f32, (64, a.D))
    s = tw.zeros(f32, (64, a.BN))
    p = tw.zeros(a.DT, (64, a.BN))
    top = tw.zeros(f32, (64,))
    mark = tw.zeros(f32, (64,))
    total = tw.zeros(f32, (64,))
    if a.TURNS and w == a.C - 1:
        after.arrive()  # the first turn is the first consumer's
    for t in tw.persistent(tw.cdiv(S, 64 * a.C) * (HK * a.G) * B):
        b, h, bq = rising(t, tw.cdiv(S, 64 * a.C), a)
        row = bq * (64 * a.C) + w * 64
        tiles = key_tiles(bq, a)
        out = tw.zeros(f32, (64, a.D))
        p = tw.zeros(a.DT, (64, a.BN))
        top = tw.full(f32, (64,), float("-inf"))
        total = tw.zeros(f32, (64,))
        qs = a.queries.wait()
        for j in tw.unroll(WIDTH):
            key = (tiles - 1 - j) * a.BN
            ks = a.keys.wait()
            if (WIDTH - 1 - j) * a.BN < w * 64 + 64:
                tw.wgmma(s, a.sQ[qs, w * 64 : (w + 1) * 64, :], a.sK[ks].T, zero=True)
                if j == 0:
                    tw.wgmma_wait(0)
                else:
                    vs = a.values.wait()
                    if (WIDTH - j) * a.BN < w * 64 + 64:  # the key tile before was one of this consumer's
                        tw.wgmma(out, p, a.sV[vs])
                        tw.wgmma_wait(1)
                    else:
                        tw.wgmma_wait(0)
                        group.sync()
                if j == 0 or a.STAY:
                    if j == 0 or (WIDTH - j) * a.BN >= w * 64 + 64:
                        # A bf16 reference that stays is of keys that a row does not see too: it may see none of this tile.
                        top = tw.max(s, axis=1) if a.STAY and a.DT == bf16 else tw.max(tw.where(below(s, row, key), s, float("-inf")), axis=1)
                        mark = mark_of(top, a.scale)
                else:
                    next_top = tw.maximum(top, tw.max(tw.where(below(s, row, key), s, float("-inf")), axis=1))
                    mark = mark_of(next_top, a.scale)
                    alpha = tw.exp2(mark_of(top, a.scale) - mark)
                    top = next_top
                    total = total * alpha
                e = tw.where(below(s, row, key), tw.exp2(s * a.scale - mark[:, None]), 0.0)
                total = total + tw.sum(e, axis=1)
                a.keys.release()
                if j > 0:
                    tw.wgmma_wait(0)
                    a.values.release()
                    if not a.STAY:
                        out = out * alpha[:, None]
                p = e.to(a.DT)
            else:
                if j > 0:
                    vs = a.values.wait()
                group.sync()
                a.keys.release()
                if j > 0:
                    a.values.release()
        for i in tw.range(WIDTH, tiles):
            ks = a.keys.wait()
            if a.TURNS:
                turn.sync()
            tw.wgmma(s, a.sQ[qs, w * 64 : (w + 1) * 64, :], a.sK[ks].T, zero=True)
            vs = a.values.wait()
            tw.wgmma(out, p, a.sV[vs])
            if a.TURNS:
                after.arrive()
            tw.wgmma_wait(1)
            if a.STAY:
                e = tw.exp2(s * a.scale - mark[:, None])
            else:
                next_top = tw.maximum(top, tw.max(s, axis=1))
                mark = mark_of(next_top, a.scale)
                e = tw.exp2(s * a.scale - mark[:, None])
                alpha = tw.exp2(mark_of(top, a.scale) - mark)
                top = next_top
                total = total * alpha
            total = total + tw.sum(e, axis=1)
            a.keys.release()
            tw.wgmma_wait(0)
            a.values.release()
            if not a.STAY:
                out = out * alpha[:, None]
            p = e.to(a.DT)
        a.queries.release()
        if not a.STAY:
            mark = mark_of(top, a.scale)
        vs = a.values.wait()
        tw.wgmma(out, p, a.sV[vs])
        tw.wgmma_wait(0)
        a.values.release()
        finish(a, out, mark, total, b, h, row)


@tw.inline
def attend(given):
    """Persistent blocks walk tiles of 64 C query rows: one thread loads, C warpgroups of 64 rows compute."""
    DT, D, C, BN, STAGES, QSTAGES, CAUSAL, DIAGONAL = given.DT, given.D, given.C, given.BN, given.STAGES, given.QSTAGES, given.CAUSAL, given.DIAGONAL
    sQ = tw.shared(DT, (QSTAGES, 64 * C, D), swizzle=128)
    sK = tw.shared(DT, (STAGES, BN, D), swizzle=128)
    sV = tw.shared(DT, (STAGES, BN, D), swizzle=128)
    queries = tw.pipeline(QSTAGES, consumers=C)
    keys = tw.pipeline(STAGES, consumers=C)
    values = tw.pipeline(STAGES, consumers=C)
    # A reference that stays is the maximum of the first key tile. bf16 has the range of f32, so that scores of keys that a row does not see may take
    # part; f16 has little room above its reference and none below. At D = 256 the careful way would need more registers than there are.
    stay = given.STAY >= (1 if DT == bf16 else 2) and D < 256 and (DT == bf16 or BN >= 64 * C or not CAUSAL or DIAGONAL and BN == 64)
    a = tw.record(given, STAY=stay, sQ=sQ, sK=sK, sV=sV, queries=queries, keys=keys, values=values)
    consume = consume_diagonal if DIAGONAL else consume_all
    with tw.warpgroups(0, regs=24 if C == 2 else 32, name="producer"):
        produce_all(a)
    if C == 2:
        with tw.warpgroups(1, 2, regs=240, name="consumer") as w:
            consume(a, w)
    else:
        with tw.warpgroups(1, 2, 3, regs=160, name="consumer") as w:
            consume(a, w)


@tw.signature(target="sm_90a")
def forward(
    Q: tw.Tensor(DT, B, HK * G, S, D), K: tw.Tensor(DT, B, HK, T, D), V: tw.Tensor(DT, B, HK, T, D),
    O: tw.Tensor(DT, B, HK * G, S, D), LSE: tw.Tensor(f32, B, HK * G, S),
    scale: tw.scalar(f32, positive=True),  # softmax scale times log2(e)
    DT: tw.each(bf16, f16),
    D: tw.const(64, 128, 256) = 128,
    G: tw.const(1, 2, 4, 8) = 1,
    C: tw.const(2, 3) = 2,
    BN: tw.const(64, 80, 96, 112, 128) = 128,
    STAGES: tw.const(2, 3, 4) = 2,
    QSTAGES: tw.const(1, 2) = 2,
    # The reference of the exponentials stays that of the first key tile: never, in bf16, in f16 too. A tenth faster where no score is 69 nats (bf16) above
    # those of its row's first tile; where one is, its rows are done over key by key, and that takes some 70 times as long.
    STAY: tw.const(0, 1, 2) = 0,
):
    """Flash attention forward."""
    tw.assume(T >= 1)


@tw.kernel(
    forward,
    name="attention",
    computes="""
        let s[b, h, i, j] = scale * LN2 * sum(d, f32(Q[b, h, i, d]) * f32(K[b, h // G, j, d]))
        O[b, h, i, d] = DT(sum(j, f32(DT(exp(s[b, h, i, j]))) * f32(V[b, h // G, j, d])) / sum(j, exp(s[b, h, i, j])))
        LSE[b, h, i] = logsumexp(j, s[b, h, i, j])
    """,
)
def attention(Q, K, V, O, LSE, scale, DT, D, G, C, BN, STAGES, QSTAGES, STAY):
    """Every query attends to every key."""
    attend(tw.record(Q=Q, K=K, V=V, O=O, LSE=LSE, scale=scale, DT=DT, D=D, G=G, C=C, BN=BN, STAGES=STAGES, QSTAGES=QSTAGES, STAY=STAY, CAUSAL=0, DIAGONAL=0))


@tw.kernel(
    forward,
    name="attention_causal",
    computes="""
        let s[b, h, i, j] = scale * LN2 * sum(d, f32(Q[b, h, i, d]) * f32(K[b, h // G, j, d]))
        O[b, h, i, d] = DT(sum(j in 0:minimum(T, i + 1), f32(DT(exp(s[b, h, i, j]))) * f32(V[b, h // G, j, d])) / sum(j in 0:minimum(T, i + 1), exp(s[b, h, i, j])))
        LSE[b, h, i] = logsumexp(j in 0:minimum(T, i + 1), s[b, h, i, j])
    """,
)
def attention_causal(
    Q, K, V, O, LSE, scale, DT,
    DIAGONAL: tw.each(1, 0),  # as many keys as queries or more: every row meets the diagonal
    D, G, C, BN, STAGES, QSTAGES, STAY,
    TURNS: tw.const(0, 1) = 0,  # before the diagonal, consumers issue their products one after another
):
    """Query i attends to keys 0 to i."""
    if DIAGONAL:
        tw.assume(S <= T)
    # Of heads in groups, instances with several key tiles across the diagonal take too long for a proof. Elsewhere a diagonal across several tiles of 64 keys is not proved: 80.
    whole = DIAGONAL and 64 * C % BN == 0 and (G == 1 or 64 * C == BN)
    tile = BN if whole or BN > 64 else 80
    attend(tw.record(Q=Q, K=K, V=V, O=O, LSE=LSE, scale=scale, DT=DT, D=D, G=G, C=C, BN=tile, STAGES=STAGES, QSTAGES=QSTAGES, STAY=STAY, CAUSAL=1, DIAGONAL=whole, TURNS=TURNS))
