"""Attention of one token to a paged cache of keys and values, grouped heads. A page is a run of 128 keys that lies anywhere; a table names the pages of each sequence. Apart from that this is
decode_sm90: decode_paged_whole gives a block all keys of a sequence and head, in decode_paged they are shared out to blocks of CHUNK and a second launch joins what these leave."""
import tilewright as tw
from decode_parts import STEP, attend
from tilewright import bf16, f32, i32

B, HK, G, PAGES, MP, D, NS = tw.sizes("B HK G PAGES MP D NS")  # sequences, heads of the cache, queries of each of them, pages of the cache, most pages of a sequence, elements of a head, parts of a sequence
PAGE = 128
CHUNK = 2048  # keys of a block
MANY = tw.parameters("MANY")


@tw.inline
def bring(queries, keys, values, sQ, sK, sV, Q, K, V, table, b, h, first, end, W):
    """The producer: the queries of a head, then its keys and values first .. end, half a page at a time."""
    qs = queries.acquire()
    tw.tma_load(sQ, Q[b, h, 0:64, 0:W], on=queries.full(qs))
    for i in tw.range(tw.cdiv(end - first, STEP)):
        page = table[b, first // PAGE + i // 2]
        row = i % 2 * STEP
        ks = keys.acquire()
        tw.tma_load(sK[ks], K[page, h, row : row + STEP, 0:W], on=keys.full(ks), hint="evict_first")
        vs = values.acquire()
        tw.tma_load(sV[vs], V[page, h, row : row + STEP, 0:W], on=values.full(vs), hint="evict_first")


@tw.kernel(
    target="sm_90a",
    name="decode_paged_whole",
    computes="""
        let x[b, h, g, t] = scale * sum(d, f32(Q[b, h, g, d]) * f32(K[table[b, t // PAGE], h, t % PAGE, d]))
        O[b, h, g, d] = bf16(sum(t in 0:minimum(MP * PAGE, lengths[b]), f32(bf16(exp2(x[b, h, g, t]))) * f32(V[table[b, t // PAGE], h, t % PAGE, d])) / sum(t in 0:minimum(MP * PAGE, lengths[b]), exp2(x[b, h, g, t])))
    """,
    dependent_launch=True,
)
def decode_paged_whole(
    Q: tw.Tensor(bf16, B, HK, G, D),
    K: tw.Tensor(bf16, PAGES, HK, PAGE, D),
    V: tw.Tensor(bf16, PAGES, HK, PAGE, D),
    table: tw.Tensor(i32, B, MP, range=PAGES),  # the pages of each sequence
    lengths: tw.Tensor(i32, B, range=(1, MP * PAGE + 1)),
    O: tw.Tensor(bf16, B, HK, G, D),
    scale: tw.scalar(f32, positive=True),  # softmax scale times log2(e)
    W: tw.each(64, 128),
    STAGES: tw.const(2, 3, 4, 5, 6) = 3,
):
    """A block a sequence and head of the cache."""
    tw.assume(G <= 64)
    tw.assume(D <= W)
    tw.assume(D % 8 == 0)
    h, b = tw.grid(HK, B)
    sQ = tw.shared(bf16, (64, W), swizzle=128)
    sK = tw.shared(bf16, (STAGES, STEP, W), swizzle=128)
    sV = tw.shared(bf16, (STAGES, STEP, W), swizzle=128)
    queries = tw.pipeline(1)
    keys = tw.pipeline(STAGES)
    values = tw.pipeline(STAGES)
    with tw.warps(0, name="producer"):
        bring(queries, keys, values, sQ, sK, sV, Q, K, V, table, b, h, 0, lengths[b], W)
    with tw.warpgroups(1, name="consumer"):
        out, top, total = attend(queries, keys, values, sQ, sK, sV, 0, lengths[b], scale, W)
        tw.store(O[b, h, 0:64, 0:W], (out / total[:, None]).to(bf16))


@tw.kernel(
    target="sm_90a",
    name="paged_parts",
    computes="""
        let x[b, h, g, t] = scale * sum(d, f32(Q[b, h, g, d]) * f32(K[table[b, t // PAGE], h, t % PAGE, d]))
        let top[b, h, s, g] = max(t in s * CHUNK : minimum(minimum((s + 1) * CHUNK, MP * PAGE), lengths[b]), x[b, h, g, t])
        MX[b, h, s, g] = top[b, h, s, g]
        TOTAL[b, h, s, g] = sum(t in s * CHUNK : minimum(minimum((s + 1) * CHUNK, MP * PAGE), lengths[b]),
                                exp2(x[b, h, g, t] - top[b, h, s, g]))
        A[b, h, s, g, d] = sum(t in s * CHUNK : minimum(minimum((s + 1) * CHUNK, MP * PAGE), lengths[b]),
                               f32(bf16(exp2(x[b, h, g, t] - top[b, h, s, g]))) * f32(V[table[b, t // PAGE], h, t % PAGE, d]))
    """,
    dependent_launch=True,
)
def paged_parts(
    Q: tw.Tensor(bf16, B, HK, G, D),
    K: tw.Tensor(bf16, PAGES, HK, PAGE, D),
    V: tw.Tensor(bf16, PAGES, HK, PAGE, D),
    table: tw.Tensor(i32, B, MP, range=PAGES),  # the pages of each sequence
    lengths: tw.Tensor(i32, B, range=(1, MP * PAGE + 1)),
    MX: tw.Tensor(f32, B, HK, (MP * PAGE + CHUNK - 1) // CHUNK, G),
    TOTAL: tw.Tensor(f32, B, HK, (MP * PAGE + CHUNK - 1) // CHUNK, G),
    A: tw.Tensor(f32, B, HK, (MP * PAGE + CHUNK - 1) // CHUNK, G, D),
    scale: tw.scalar(f32, positive=True),  # softmax scale times log2(e)
    W: tw.each(64, 128),
    STAGES: tw.const(2, 3, 4, 5, 6) = 3,
):
    """A block CHUNK keys of a sequence and head of the cache."""
    tw.assume(G <= 64)
    tw.assume(D <= W)
    tw.assume(D % 8 == 0)
    s, h, b = tw.grid(tw.cdiv(MP * PAGE, CHUNK), HK, B)
    first = s * CHUNK
    end = tw.min(tw.min(first + CHUNK, MP * PAGE), lengths[b])
    sQ = tw.shared(bf16, (64, W), swizzle=128)
    sK = tw.shared(bf16, (STAGES, STEP, W), swizzle=128)
    sV = tw.shared(bf16, (STAGES, STEP, W), swizzle=128)
    queries = tw.pipeline(1)
    keys = tw.pipeline(STAGES)
    values = tw.pipeline(STAGES)
    with tw.warps(0, name="producer"):
        bring(queries, keys, values, sQ, sK, sV, Q, K, V, table, b, h, first, end, W)
    with tw.warpgroups(1, name="consumer"):
        out, top, total = attend(queries, keys, values, sQ, sK, sV, first, end, scale, W)
        tw.store(MX[b, h, s, 0:64], top)
        tw.store(TOTAL[b, h, s, 0:64], total)
        tw.store(A[b, h, s, 0:64, 0:W], out)


@tw.kernel(
    target="sm_90a",
    name="paged_join",
    computes="""
        let w[b, h, s, g] = exp2(MX[b, h, s, g] - max(r in 0:NS, MX[b, h, r, g]))
        O[b, h, g, d] = sum(s in 0:NS, w[b, h, s, g] * A[b, h, s, g, d]) / sum(s in 0:NS, w[b, h, s, g] * TOTAL[b, h, s, g])
    """,
    threads=128 * (1 + MANY),
    blocks_per_sm=8 - 6 * MANY,
    dependent_launch=True,
)
def paged_join(
    MX: tw.Tensor(f32, B, HK, NS, G),
    TOTAL: tw.Tensor(f32, B, HK, NS, G),
    A: tw.Tensor(f32, B, HK, NS, G, D),
    O: tw.Tensor(bf16, B, HK, G, D),
    W: tw.each(64, 128),
    MANY: tw.each(0, 1),
):
    """The parts of a head, each times what its maximum is below the largest: where they are few, a warp a query, so that nobody meets; else a block a query, 64 parts at a time."""
    tw.assume(D <= W)
    tw.assume(D % 8 == 0)
    if MANY:
        g, h, b = tw.grid(G, HK, B)
        top = tw.full(f32, (64,), float("-inf"))
        for c in tw.range(tw.cdiv(NS, 64)):
            top = tw.maximum(top, tw.load(MX[b, h, c * 64 : c * 64 + 64, g], fill=float("-inf")))
        m = tw.max(top, axis=0)
        out = tw.zeros(f32, (64, W))
        total = tw.zeros(f32, (64,))
        for c in tw.range(tw.cdiv(NS, 64)):
            w = tw.exp2(tw.load(MX[b, h, c * 64 : c * 64 + 64, g], fill=float("-inf")) - m)
            total = total + w * tw.load(TOTAL[b, h, c * 64 : c * 64 + 64, g], fill=0.0)
            out = out + w[:, None] * tw.load(A[b, h, c * 64 : c * 64 + 64, g, 0:W], fill=0.0)
        tw.store(O[b, h, g, 0:W], (tw.sum(out, axis=0) / tw.sum(total, axis=0)).to(bf16))
    else:
        tw.assume(NS <= 16)
        q, h, b = tw.grid(tw.cdiv(G, 4), HK, B)
        g = q * 4
        m = tw.full(f32, (4,), float("-inf"))
        for s in tw.range(NS, unroll=4):
            m = tw.maximum(m, tw.load(MX[b, h, s, g : g + 4], fill=float("-inf")))
        out = tw.zeros(f32, (4, W))
        total = tw.zeros(f32, (4,))
        for s in tw.range(NS, unroll=4):
            w = tw.exp2(tw.load(MX[b, h, s, g : g + 4], fill=float("-inf")) - m)
            total = total + w * tw.load(TOTAL[b, h, s, g : g + 4], fill=0.0)
            out = out + w[:, None] * tw.load(A[b, h, s, g : g + 4, 0:W], fill=0.0)
        tw.store(O[b, h, g : g + 4, 0:W], (out / total[:, None]).to(bf16))


@tw.program(
    computes="""
        let x[b, h, g, t] = scale * sum(d, f32(Q[b, h, g, d]) * f32(K[table[b, t // PAGE], h, t % PAGE, d]))
        O[b, h, g, d] = bf16(sum(t in 0:minimum(MP * PAGE, lengths[b]), f32(bf16(exp2(x[b, h, g, t]))) * f32(V[table[b, t // PAGE], h, t % PAGE, d])) / sum(t in 0:minimum(MP * PAGE, lengths[b]), exp2(x[b, h, g, t])))
    """
)
def decode_paged(
    Q: tw.Tensor(bf16, B, HK, G, D),
    K: tw.Tensor(bf16, PAGES, HK, PAGE, D),
    V: tw.Tensor(bf16, PAGES, HK, PAGE, D),
    table: tw.Tensor(i32, B, MP, range=PAGES),  # the pages of each sequence
    lengths: tw.Tensor(i32, B, range=(1, MP * PAGE + 1)),
    O: tw.Tensor(bf16, B, HK, G, D),
    scale: tw.scalar(f32, positive=True),
):
    MX = tw.buffer(f32, B, HK, (MP * PAGE + CHUNK - 1) // CHUNK, G)
    TOTAL = tw.buffer(f32, B, HK, (MP * PAGE + CHUNK - 1) // CHUNK, G)
    A = tw.buffer(f32, B, HK, (MP * PAGE + CHUNK - 1) // CHUNK, G, D)
    paged_parts(Q, K, V, table, lengths, MX, TOTAL, A, scale)
    paged_join(MX, TOTAL, A, O)
