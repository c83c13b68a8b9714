"""Flash attention forward for Hopper: keys and values stream through two rings, the scores of the next key tile are computed
while the probabilities of the present one are made, and neither ever leaves the registers. Grouped-query heads, any lengths."""
import tilewright as tw
from tilewright import bf16, f32

B, HK, S, T = tw.sizes("B HK S T")
LN2 = 0.6931471805599453


@tw.inline
def produce(Q, K, V, sQ, sK, sV, queries, keys, values, b, h, row, tiles, G, BN):
    """Loads the query rows of one tile, then its keys and values in the order of their use."""
    qs = queries.acquire()
    tw.tma_load(sQ[qs], Q[b, h, row, 0], on=queries.full(qs))
    for t in tw.range(tiles):
        ks = keys.acquire()
        tw.tma_load(sK[ks], K[b, h // G, t * BN, 0], on=keys.full(ks))
        vs = values.acquire()
        tw.tma_load(sV[vs], V[b, h // G, t * BN, 0], on=values.full(vs))


@tw.inline
def mark_of(top, scale):
    """What exponentials are relative to: the running maximum rounded up to a multiple of 8 powers of two. It rarely moves, and
    where it does not, nothing has to be rescaled."""
    return tw.ceil(top * scale * 0.125) * 8.0


@tw.inline
def consume(O, LSE, scale, sQ, sK, sV, queries, keys, values, w, b, h, row, whole, tiles, D, BN, CAUSAL, DT):
    """64 query rows. The first `whole` key tiles need no mask. A step computes the scores
    of one key tile and adds the values of the tile before, so that the matrix unit works while the exponentials are made."""
    qs = queries.wait()
    out = tw.zeros(f32, (64, D))
    ks = keys.wait()
    s = tw.zeros(f32, (64, BN))
    tw.wgmma(s, sQ[qs, w * 64 : (w + 1) * 64, :], sK[ks].T)
    tw.wgmma_wait(0)
    if CAUSAL:
        top = tw.max(tw.where((tw.coord(s, 1) <= row + tw.coord(s, 0)) & (tw.coord(s, 1) < T), s, float("-inf")), axis=1)
        mark = mark_of(top, scale)
        e = tw.where((tw.coord(s, 1) <= row + tw.coord(s, 0)) & (tw.coord(s, 1) < T), tw.exp2(s * scale - mark[:, None]), 0.0)
    else:
        top = tw.max(tw.where(tw.coord(s, 1) < T, s, float("-inf")), axis=1)
        mark = mark_of(top, scale)
        e = tw.where(tw.coord(s, 1) < T, tw.exp2(s * scale - mark[:, None]), 0.0)
    total = tw.sum(e, axis=1)
    keys.release()
    p = e.to(DT)
    for t in tw.range(1, whole):
        ks = keys.wait()
        tw.wgmma(s, sQ[qs, w * 64 : (w + 1) * 64, :], sK[ks].T, zero=True)
        vs = values.wait()
        tw.wgmma(out, p, sV[vs])
        tw.wgmma_wait(1)
        next_top = tw.maximum(top, tw.max(s, axis=1))
        mark = mark_of(next_top, scale)
        e = tw.exp2(s * scale - mark[:, None])
        alpha = tw.exp2(mark_of(top, scale) - mark)
        top = next_top
        total = total * alpha + tw.sum(e, axis=1)
        keys.release()  # after the sums: the exponentials end before the wait for the values begins
        tw.wgmma_wait(0)
        values.release()
        out = out * alpha[:, None]
        p = e.to(DT)
    for t in tw.range(tw.max(1, whole), tiles):
        ks = keys.wait()
        tw.wgmma(s, sQ[qs, w * 64 : (w + 1) * 64, :], sK[ks].T, zero=True)
        vs = values.wait()
        tw.wgmma(out, p, sV[vs])
        tw.wgmma_wait(1)
        if CAUSAL:
            seen = (tw.coord(s, 1) + t * BN <= row + tw.coord(s, 0)) & (tw.coord(s, 1) < T - t * BN)
        else:
            seen = tw.coord(s, 1) < T - t * BN
        next_top = tw.maximum(top, tw.max(tw.where(seen, s, float("-inf")), axis=1))
        mark = mark_of(next_top, scale)
        e = tw.where(seen, tw.exp2(s * scale - mark[:, None]), 0.0)
        alpha = tw.exp2(mark_of(top, scale) - mark)
        top = next_top
        total = total * alpha + tw.sum(e, axis=1)
        keys.release()
        tw.wgmma_wait(0)
        values.release()
        out = out * alpha[:, None]
        p = e.to(DT)
    queries.release()
    vs = values.wait()
    tw.wgmma(out, p, sV[vs])
    tw.wgmma_wait(0)
    values.release()
    inverse = 1.0 / total
    tw.store(O[b, h, row, 0], (out * inverse[:, None]).to(DT))
    tw.store(LSE[b, h, row : row + 64], (mark_of(top, scale) + tw.log2(total)) * LN2)


@tw.inline
def attend(Q, K, V, O, LSE, scale, D, G, C, BN, STAGES, QSTAGES, DT):
    """Persistent blocks walk tiles of 64 C query rows; blocks of one head are neighbours, so that its keys and values stay in L2."""
    sQ = tw.shared(DT, (QSTAGES, 64 * C, D), swizzle=128)
    sK = tw.shared(DT, (STAGES, BN, D), swizzle=128)
    sV = tw.shared(DT, (STAGES, BN, D), swizzle=128)
    queries = tw.pipeline(QSTAGES, consumers=C)
    keys = tw.pipeline(STAGES, consumers=C)
    values = tw.pipeline(STAGES, consumers=C)
    with tw.warpgroups(0, regs=24 if C == 2 else 32, name="producer"):
        for t in tw.persistent(tw.cdiv(S, 64 * C) * (HK * G) * B):
            bq = t % tw.cdiv(S, 64 * C)
            h = t // tw.cdiv(S, 64 * C) % (HK * G)
            b = t // (tw.cdiv(S, 64 * C) * (HK * G))
            produce(Q, K, V, sQ, sK, sV, queries, keys, values, b, h, bq * (64 * C), tw.cdiv(T, BN), G, BN)
    if C == 2:
        with tw.warpgroups(1, 2, regs=240, name="consumer") as w:
            for t in tw.persistent(tw.cdiv(S, 64 * C) * (HK * G) * B):
                bq = t % tw.cdiv(S, 64 * C)
                h = t // tw.cdiv(S, 64 * C) % (HK * G)
                b = t // (tw.cdiv(S, 64 * C) * (HK * G))
                consume(O, LSE, scale, sQ, sK, sV, queries, keys, values, w, b, h, bq * (64 * C) + w * 64, T // BN, tw.cdiv(T, BN), D, BN, 0, DT)
    else:
        with tw.warpgroups(1, 2, 3, regs=160, name="consumer") as w:
            for t in tw.persistent(tw.cdiv(S, 64 * C) * (HK * G) * B):
                bq = t % tw.cdiv(S, 64 * C)
                h = t // tw.cdiv(S, 64 * C) % (HK * G)
                b = t // (tw.cdiv(S, 64 * C) * (HK * G))
                consume(O, LSE, scale, sQ, sK, sV, queries, keys, values, w, b, h, bq * (64 * C) + w * 64, T // BN, tw.cdiv(T, BN), D, BN, 0, DT)


@tw.inline
def attend_causal(Q, K, V, O, LSE, scale, h, rank, b, D, G, C, BN, STAGES, DT):
    """Query i sees keys 0 to i. One block per tile, the longest first: the hardware hands a new one to whoever is free."""
    bq = tw.cdiv(S, 64 * C) - 1 - rank
    tiles = tw.cdiv(tw.min(T, (bq + 1) * (64 * C)), BN)
    sQ = tw.shared(DT, (1, 64 * C, D), swizzle=128)
    sK = tw.shared(DT, (STAGES, BN, D), swizzle=128)
    sV = tw.shared(DT, (STAGES, BN, D), swizzle=128)
    queries = tw.pipeline(1, consumers=C)
    keys = tw.pipeline(STAGES, consumers=C)
    values = tw.pipeline(STAGES, consumers=C)
    with tw.warpgroups(0, regs=24 if C == 2 else 32, name="producer"):
        produce(Q, K, V, sQ, sK, sV, queries, keys, values, b, h, bq * (64 * C), tiles, G, BN)
    if C == 2:
        with tw.warpgroups(1, 2, regs=240, name="consumer") as w:
            row = bq * (64 * C) + w * 64
            consume(O, LSE, scale, sQ, sK, sV, queries, keys, values, w, b, h, row, tw.min(T, row + 1) // BN, tiles, D, BN, 1, DT)
    else:
        with tw.warpgroups(1, 2, 3, regs=160, name="consumer") as w:
            row = bq * (64 * C) + w * 64
            consume(O, LSE, scale, sQ, sK, sV, queries, keys, values, w, b, h, row, tw.min(T, row + 1) // BN, tiles, D, BN, 1, DT)


@tw.kernel(
    target="sm_90a",
    name="attention",
    computes="""
        let s[b, h, i, j] = scale * LN2 * sum(d, f32(Q[b, h, i, d]) * f32(K[b, h // G, j, d]))
        O[b, h, i, d] = bf16(sum(j, exp(s[b, h, i, j]) * f32(V[b, h // G, j, d])) / sum(j, exp(s[b, h, i, j])))
        LSE[b, h, i] = logsumexp(j, s[b, h, i, j])
    """,
)
def attention(
    Q: tw.Tensor(bf16, B, HK * G, S, D),
    K: tw.Tensor(bf16, B, HK, T, D),
    V: tw.Tensor(bf16, B, HK, T, D),
    O: tw.Tensor(bf16, B, HK * G, S, D),
    LSE: tw.Tensor(f32, B, HK * G, S),
    scale: tw.scalar(f32),  # softmax scale times log2(e), positive
    D: tw.const(64, 128, 256) = 128,
    G: tw.const(1, 2, 4, 8) = 1,
    C: tw.const(2, 3) = 2,
    BN: tw.const(64, 80, 96, 112, 128) = 128,
    STAGES: tw.const(2, 3, 4) = 2,
    QSTAGES: tw.const(1, 2) = 1,
):
    """Every query attends to every key."""
    tw.assume(T >= 1)
    attend(Q, K, V, O, LSE, scale, D, G, C, BN, STAGES, QSTAGES, bf16)


@tw.kernel(
    target="sm_90a",
    name="attention_causal",
    computes="""
        let s[b, h, i, j] = scale * LN2 * sum(d, f32(Q[b, h, i, d]) * f32(K[b, h // G, j, d]))
        O[b, h, i, d] = bf16(sum(j in 0:minimum(T, i + 1), exp(s[b, h, i, j]) * f32(V[b, h // G, j, d])) / sum(j in 0:minimum(T, i + 1), exp(s[b, h, i, j])))
        LSE[b, h, i] = logsumexp(j in 0:minimum(T, i + 1), s[b, h, i, j])
    """,
)
def attention_causal(
    Q: tw.Tensor(bf16, B, HK * G, S, D),
    K: tw.Tensor(bf16, B, HK, T, D),
    V: tw.Tensor(bf16, B, HK, T, D),
    O: tw.Tensor(bf16, B, HK * G, S, D),
    LSE: tw.Tensor(f32, B, HK * G, S),
    scale: tw.scalar(f32),  # softmax scale times log2(e), positive
    D: tw.const(64, 128, 256) = 128,
    G: tw.const(1, 2, 4, 8) = 1,
    C: tw.const(2, 3) = 3,
    BN: tw.const(64, 80, 96, 112, 128) = 80,
    STAGES: tw.const(2, 3, 4) = 4,
):
    """Query i attends to keys 0 to i."""
    h, rank, b = tw.grid(HK * G, tw.cdiv(S, 64 * C), B)
    tw.assume(T >= 1)
    attend_causal(Q, K, V, O, LSE, scale, h, rank, b, D, G, C, BN, STAGES, bf16)
