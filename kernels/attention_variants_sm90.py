"""Attention forward for Hopper with what models add to it: a sliding window, capped scores, a bias that falls with the distance (ALiBi). The running maximum is the reference of
the exponentials in every step, so that no scores are slower or less exact than others."""
import tilewright as tw
from tilewright import bf16, f32, i32

B, HK, S, T, P, E, TILES = tw.sizes("B HK S T P E TILES")
G, D = tw.parameters("G D")
LN2 = 0.6931471805599453
LOG2E = 1.4426950408889634


@tw.inline
def plain(x, scale, extra, h, distance):
    return x * scale


@tw.inline
def capped(x, scale, extra, h, distance):
    return extra * tw.tanh(x * scale / extra) * LOG2E


@tw.inline
def falling(x, scale, extra, h, distance):
    return x * scale + distance.to(f32) * (tw.load(extra[h]) * LOG2E)


@tw.inline
def step(a, out, x, top, total, i, row, w, h, MASKED):
    """The scores of one key tile, and its values added to what the rows have; MASKED: some rows do not see some of its keys."""
    ks = a.keys.wait()
    tw.wgmma(x, a.sQ[w * 64 : (w + 1) * 64, :], a.sK[ks].T, zero=True)
    tw.wgmma_wait(0)
    a.keys.release()
    y = a.score(x, a.scale, a.extra, h, tw.coord(x, 1) + i * a.BN - (tw.coord(x, 0) + row))
    if MASKED:
        seen = (tw.coord(x, 1) + i * a.BN <= tw.coord(x, 0) + row) & (tw.coord(x, 1) + i * a.BN < T)
        if a.WINDOW:
            seen = seen & (tw.coord(x, 1) + i * a.BN > tw.coord(x, 0) + row - a.W)
        new_top = tw.maximum(top, tw.max(tw.where(seen, y, float("-inf")), axis=1))
    else:
        new_top = tw.maximum(top, tw.max(y, axis=1))
    new_mark = tw.maximum(new_top, -1.0e30)
    e = tw.exp2(y - new_mark[:, None])
    if MASKED:
        e = tw.where(seen, e, 0.0)
    alpha = tw.exp2(tw.maximum(top, -1.0e30) - new_mark)
    total = total * alpha + tw.sum(e, axis=1)
    out = out * alpha[:, None]
    vs = a.values.wait()
    tw.wgmma(out, e.to(bf16), a.sV[vs])
    tw.wgmma_wait(0)
    a.values.release()
    return out, new_top, total


@tw.inline
def attend(Q, K, V, O, LSE, scale, D, G, BN, STAGES, score, extra=0, W=0):
    """A block has 128 query rows: one thread loads, two warpgroups of 64 rows compute. It goes through the key tiles that its rows see, from the first to the last."""
    WINDOW = W > 0
    sQ = tw.shared(bf16, (128, D), swizzle=128)
    sK = tw.shared(bf16, (STAGES, BN, D), swizzle=128)
    sV = tw.shared(bf16, (STAGES, BN, D), swizzle=128)
    queries = tw.pipeline(1, consumers=2)
    keys = tw.pipeline(STAGES, consumers=2)
    values = tw.pipeline(STAGES, consumers=2)
    a = tw.record(sQ=sQ, sK=sK, sV=sV, keys=keys, values=values, scale=scale, extra=extra, W=W, score=score, BN=BN, WINDOW=WINDOW)
    bq, h, b = tw.grid(tw.cdiv(S, 128), HK * G, B)
    first = tw.max(0, bq * 128 - W + 1) // BN if WINDOW else 0
    end = tw.cdiv(tw.min(T, bq * 128 + 128), BN)
    with tw.warpgroups(0, regs=24, name="producer"):
        qs = queries.acquire()
        tw.tma_load(sQ, Q[b, h, bq * 128, 0], on=queries.full(qs))
        for i in tw.range(first, end):
            ks = keys.acquire()
            tw.tma_load(sK[ks], K[b, h // G, i * BN, 0], on=keys.full(ks))
            vs = values.acquire()
            tw.tma_load(sV[vs], V[b, h // G, i * BN, 0], on=values.full(vs))
    with tw.warpgroups(1, 2, regs=240, name="consumer") as w:
        row = bq * 128 + w * 64
        out = tw.zeros(f32, (64, D))
        x = tw.zeros(f32, (64, BN))
        top = tw.full(f32, (64,), float("-inf"))
        total = tw.zeros(f32, (64,))
        queries.wait()
        if BN == 128 and (W >= 256 or not WINDOW):  # key tiles that every row sees whole have no mask
            whole = tw.max(first, tw.min(tw.cdiv(row + 64 - W, BN), end)) if WINDOW else 0  # from here on no row's window begins
            last = tw.max(whole, tw.min((row + 1) // BN, end))  # and up to here none of them ends
            for i in tw.range(first, whole):
                out, top, total = step(a, out, x, top, total, i, row, w, h, 1)
            for i in tw.range(whole, last):
                out, top, total = step(a, out, x, top, total, i, row, w, h, 0)
            for i in tw.range(last, end):
                out, top, total = step(a, out, x, top, total, i, row, w, h, 1)
        else:
            for i in tw.range(first, end):
                out, top, total = step(a, out, x, top, total, i, row, w, h, 1)
        queries.release()
        inverse = 1.0 / total
        tw.store(O[b, h, row, 0], (out * inverse[:, None]).to(bf16))
        tw.store(LSE[b, h, row : row + 64], (tw.maximum(top, -1.0e30) + tw.log2(total)) * LN2)


CAUSAL = """
    O[b, h, i, d] = bf16(sum(j in 0:minimum(T, i + 1), f32(bf16(exp(s[b, h, i, j]))) * f32(V[b, h // G, j, d])) / sum(j in 0:minimum(T, i + 1), exp(s[b, h, i, j])))
    LSE[b, h, i] = logsumexp(j in 0:minimum(T, i + 1), s[b, h, i, j])
"""


@tw.signature(target="sm_90a")
def forward(
    Q: tw.Tensor(bf16, B, HK * G, S, D), K: tw.Tensor(bf16, B, HK, T, D), V: tw.Tensor(bf16, B, HK, T, D),
    O: tw.Tensor(bf16, B, HK * G, S, D), LSE: tw.Tensor(f32, B, HK * G, S),
    scale: tw.scalar(f32, positive=True),  # softmax scale; times log2(e) where scores are not capped
    D: tw.const(64, 128) = 128, G: tw.const(1, 2, 4, 8) = 1, BN: tw.const(64, 128) = 128, STAGES: tw.const(2, 3) = 2,
):
    """Queries and keys of one sequence."""
    tw.assume(S <= T)


@tw.kernel(
    forward,
    name="attention_window",
    computes="""
        let s[b, h, i, j] = scale * LN2 * sum(d, f32(Q[b, h, i, d]) * f32(K[b, h // G, j, d]))
        O[b, h, i, d] = bf16(sum(j in maximum(0, i - W + 1):minimum(T, i + 1), f32(bf16(exp(s[b, h, i, j]))) * f32(V[b, h // G, j, d])) / sum(j in maximum(0, i - W + 1):minimum(T, i + 1), exp(s[b, h, i, j])))
        LSE[b, h, i] = logsumexp(j in maximum(0, i - W + 1):minimum(T, i + 1), s[b, h, i, j])
    """,
)
def attention_window(Q, K, V, O, LSE, scale, D, G, BN, STAGES, W: tw.const(128, 512, 1024, 2048, 4096) = 1024):
    """Query i attends to keys i - W + 1 to i."""
    attend(Q, K, V, O, LSE, scale, D, G, BN, STAGES, plain, W=W)


@tw.kernel(forward, name="attention_softcap", computes="let s[b, h, i, j] = cap * tanh(scale * sum(d, f32(Q[b, h, i, d]) * f32(K[b, h // G, j, d])) / cap)" + CAUSAL)
def attention_softcap(Q, K, V, O, LSE, scale, cap: tw.scalar(f32, positive=True), D, G, BN, STAGES):
    """Causal; scores are bent so that none leaves -cap to cap."""
    attend(Q, K, V, O, LSE, scale, D, G, BN, STAGES, capped, extra=cap)


@tw.kernel(
    forward,
    name="attention_alibi",
    computes="let s[b, h, i, j] = scale * LN2 * sum(d, f32(Q[b, h, i, d]) * f32(K[b, h // G, j, d])) + slope[h] * f32(j - i)" + CAUSAL,
)
def attention_alibi(Q, K, V, slope: tw.Tensor(f32, HK * G), O, LSE, scale, D, G, BN, STAGES):
    """Causal; a key counts slope less for each place that it lies before the query."""
    attend(Q, K, V, O, LSE, scale, D, G, BN, STAGES, falling, extra=slope)


@tw.kernel(
    target="sm_90a",
    name="attention_packed",
    computes="""
        let s[h, i, j] = scale * LN2 * sum(d, f32(Q[h, i, d]) * f32(K[h // G, j, d]))
        O[h, i, d] = bf16(sum(j in starts[document[i]]:i + 1, f32(bf16(exp(s[h, i, j]))) * f32(V[h // G, j, d])) / sum(j in starts[document[i]]:i + 1, exp(s[h, i, j])))
        LSE[h, i] = logsumexp(j in starts[document[i]]:i + 1, s[h, i, j])
    """,
)
def attention_packed(
    Q: tw.Tensor(bf16, HK * G, P, D),
    K: tw.Tensor(bf16, HK, P, D),
    V: tw.Tensor(bf16, HK, P, D),
    document: tw.Tensor(i32, P),  # of each row, in order
    starts: tw.Tensor(i32, E + 1, offsets_of="document"),
    tile_first: tw.Tensor(i32, TILES),  # the first row of each tile
    tile_end: tw.Tensor(i32, TILES, tile_ends=("tile_first", 128, "document")),  # the row after its last one
    O: tw.Tensor(bf16, HK * G, P, D),
    LSE: tw.Tensor(f32, HK * G, P),
    scale: tw.scalar(f32, positive=True),  # softmax scale times log2(e)
    D: tw.const(64, 128) = 128,
    G: tw.const(1, 2, 4, 8) = 1,
    BN: tw.const(64, 128) = 128,
    STAGES: tw.const(2, 3) = 2,
):
    """Rows of several documents one after another; a row attends to the rows of its document up to itself."""
    tw.assume(TILES * 128 >= P + E * 128)
    sQ = tw.shared(bf16, (128, D), swizzle=128)
    sK = tw.shared(bf16, (STAGES, BN, D), swizzle=128)
    sV = tw.shared(bf16, (STAGES, BN, D), swizzle=128)
    queries = tw.pipeline(1, consumers=2)
    keys = tw.pipeline(STAGES, consumers=2)
    values = tw.pipeline(STAGES, consumers=2)
    t, h = tw.grid(TILES, HK * G)
    first = tile_first[t]
    end = tile_end[t]
    begin = starts[document[first]]
    steps = tw.cdiv(tw.min(end, first + 128) - begin, BN)
    with tw.warpgroups(0, regs=24, name="producer"):
        if end > first:
            qs = queries.acquire()
            tw.tma_load(sQ, Q[h, first, 0], on=queries.full(qs))
            for i in tw.range(steps):
                ks = keys.acquire()
                tw.tma_load(sK[ks], K[h // G, begin + i * BN, 0], on=keys.full(ks))
                vs = values.acquire()
                tw.tma_load(sV[vs], V[h // G, begin + i * BN, 0], on=values.full(vs))
    with tw.warpgroups(1, 2, regs=240, name="consumer") as w:
        if end > first:
            row = first + w * 64
            out = tw.zeros(f32, (64, D))
            x = tw.zeros(f32, (64, BN))
            top = tw.full(f32, (64,), float("-inf"))
            total = tw.zeros(f32, (64,))
            queries.wait()
            for i in tw.range(steps):
                ks = keys.wait()
                tw.wgmma(x, sQ[w * 64 : (w + 1) * 64, :], sK[ks].T, zero=True)
                tw.wgmma_wait(0)
                keys.release()
                seen = tw.coord(x, 1) <= tw.coord(x, 0) + (row - begin - i * BN)
                y = x * scale
                new_top = tw.maximum(top, tw.max(tw.where(seen, y, float("-inf")), axis=1))
                new_mark = tw.maximum(new_top, -1.0e30)
                e = tw.where(seen, tw.exp2(y - new_mark[:, None]), 0.0)
                alpha = tw.exp2(tw.maximum(top, -1.0e30) - new_mark)
                top = new_top
                total = total * alpha + tw.sum(e, axis=1)
                out = out * alpha[:, None]
                vs = values.wait()
                tw.wgmma(out, e.to(bf16), sV[vs])
                tw.wgmma_wait(0)
                values.release()
            queries.release()
            inverse = 1.0 / total
            tw.store(O[h, row : row + 64, 0:D], (out * inverse[:, None]).to(bf16), limit=(end, None))
            tw.store(LSE[h, row : row + 64], (tw.maximum(top, -1.0e30) + tw.log2(total)) * LN2, limit=(end,))
