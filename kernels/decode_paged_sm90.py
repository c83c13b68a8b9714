"""Attention of one token to a paged cache of keys and values, grouped heads. Every page of a sequence leaves a maximum, a sum and a weighted sum of values; a second launch joins those of a sequence."""
import tilewright as tw
from tilewright import bf16, f32, i32

B, HK, G, PAGES, MP, D = tw.sizes("B HK G PAGES MP D")  # sequences, heads of the cache, queries of each of them, pages of the cache, most pages of a sequence, elements of a head
PAGE = 128
MANY = tw.parameters("MANY")


@tw.kernel(
    target="sm_90a",
    name="paged_parts",
    computes="""
        let x[b, h, g, p, t] = scale * sum(d, f32(Q[b, h, g, d]) * f32(K[table[b, p], h, t, d]))
        let top[b, h, p, g] = maximum(max(t in 0:minimum(PAGE, lengths[b] - p * PAGE), x[b, h, g, p, t]), -1.0e30)
        MX[b, h, p, g] = top[b, h, p, g]
        TOTAL[b, h, p, g] = sum(t in 0:minimum(PAGE, lengths[b] - p * PAGE), exp2(x[b, h, g, p, t] - top[b, h, p, g]))
        A[b, h, p, g, d] = sum(t in 0:minimum(PAGE, lengths[b] - p * PAGE), f32(bf16(exp2(x[b, h, g, p, t] - top[b, h, p, g]))) * f32(V[table[b, p], h, t, d]))
    """,
    dependent_launch=True,
    blocks_per_sm=2,
)
def paged_parts(
    Q: tw.Tensor(bf16, B, HK, G, D),
    K: tw.Tensor(bf16, PAGES, HK, PAGE, D),
    V: tw.Tensor(bf16, PAGES, HK, PAGE, D),
    table: tw.Tensor(i32, B, MP, range=PAGES),  # the pages of each sequence
    lengths: tw.Tensor(i32, B, range=(1, MP * PAGE + 1)),
    MX: tw.Tensor(f32, B, HK, MP, G),
    TOTAL: tw.Tensor(f32, B, HK, MP, G),
    A: tw.Tensor(f32, B, HK, MP, G, D),
    scale: tw.scalar(f32, positive=True),  # softmax scale times log2(e)
    W: tw.each(64, 128),
    TOGETHER: tw.const(1, 2, 4, 8, 16) = 8,  # pages of a block
    STAGES: tw.const(1, 2, 3, 4) = 3,
):
    """A block has some pages of a sequence and a head, one after another, through a ring of keys and one of values. The G queries of a head are the first rows of a tile of 64."""
    tw.assume(G <= 64)
    tw.assume(D <= W)
    tw.assume(D % 8 == 0)
    sQ = tw.shared(bf16, (64, W), swizzle=128)
    sK = tw.shared(bf16, (STAGES, PAGE, W), swizzle=128)
    sV = tw.shared(bf16, (STAGES, PAGE, W), swizzle=128)
    queries = tw.pipeline(1)
    keys = tw.pipeline(STAGES)
    values = tw.pipeline(STAGES)
    c, h, b = tw.grid(tw.cdiv(MP, TOGETHER), HK, B)
    with tw.warpgroups(0, regs=24, name="producer"):
        qs = queries.acquire()
        tw.tma_load(sQ, Q[b, h, 0:64, 0:W], on=queries.full(qs))
        for i in tw.range(TOGETHER):
            if c * TOGETHER + i < MP:
                page = table[b, c * TOGETHER + i]
                ks = keys.acquire()
                tw.tma_load(sK[ks], K[page, h, 0:PAGE, 0:W], on=keys.full(ks), hint="evict_first")
                vs = values.acquire()
                tw.tma_load(sV[vs], V[page, h, 0:PAGE, 0:W], on=values.full(vs), hint="evict_first")
    with tw.warpgroups(1, regs=216, name="consumer"):
        x = tw.zeros(f32, (64, PAGE))
        out = tw.zeros(f32, (64, W))
        queries.wait()
        for i in tw.range(TOGETHER):
            p = c * TOGETHER + i
            if p < MP:
                ks = keys.wait()
                tw.wgmma(x, sQ, sK[ks].T, zero=True)
                tw.wgmma_wait(0)
                keys.release()
                seen = tw.coord(x, 1) < lengths[b] - p * PAGE
                top = tw.maximum(tw.max(tw.where(seen, x * scale, float("-inf")), axis=1), -1.0e30)
                e = tw.where(seen, tw.exp2(x * scale - top[:, None]), 0.0)
                vs = values.wait()
                tw.wgmma(out, e.to(bf16), sV[vs], zero=True)
                tw.store(MX[b, h, p, 0:64], top)
                tw.store(TOTAL[b, h, p, 0:64], tw.sum(e, axis=1))
                tw.wgmma_wait(0)
                values.release()
                tw.store(A[b, h, p, 0:64, 0:W], out)
        queries.release()


@tw.kernel(
    target="sm_90a",
    name="paged_join",
    computes="""
        let m[b, h, g] = max(q in 0:minimum(MP, (lengths[b] + PAGE - 1) // PAGE), MX[b, h, q, g])
        O[b, h, g, d] = (sum(p in 0:minimum(MP, (lengths[b] + PAGE - 1) // PAGE), exp2(MX[b, h, p, g] - m[b, h, g]) * A[b, h, p, g, d])
                         / sum(p in 0:minimum(MP, (lengths[b] + PAGE - 1) // PAGE), exp2(MX[b, h, p, g] - m[b, h, g]) * TOTAL[b, h, p, g]))
    """,
    threads=128 * (1 + MANY),
    blocks_per_sm=8 - 6 * MANY,
    dependent_launch=True,
)
def paged_join(
    MX: tw.Tensor(f32, B, HK, MP, G),
    TOTAL: tw.Tensor(f32, B, HK, MP, G),
    A: tw.Tensor(f32, B, HK, MP, G, D),
    lengths: tw.Tensor(i32, B, range=(1, MP * PAGE + 1)),
    O: tw.Tensor(bf16, B, HK, G, D),
    W: tw.each(64, 128),
    MANY: tw.each(0, 1),
):
    """The pages of a sequence, each times what its maximum is below the largest: where they are few, a warp a query, so that nobody meets; else a block a query, 64 pages at a time."""
    tw.assume(D <= W)
    tw.assume(D % 8 == 0)
    if MANY:
        g, h, b = tw.grid(G, HK, B)
        end = tw.min(MP, tw.cdiv(lengths[b], PAGE))
        top = tw.full(f32, (64,), float("-inf"))
        for c in tw.range(tw.cdiv(end, 64)):
            top = tw.maximum(top, tw.load(MX[b, h, c * 64 : c * 64 + 64, g], fill=float("-inf"), limit=(end,)))
        m = tw.max(top, axis=0)
        out = tw.zeros(f32, (64, W))
        total = tw.zeros(f32, (64,))
        for c in tw.range(tw.cdiv(end, 64)):
            w = tw.exp2(tw.load(MX[b, h, c * 64 : c * 64 + 64, g], fill=float("-inf"), limit=(end,)) - m)
            total = total + w * tw.load(TOTAL[b, h, c * 64 : c * 64 + 64, g], fill=0.0, limit=(end,))
            out = out + w[:, None] * tw.load(A[b, h, c * 64 : c * 64 + 64, g, 0:W], fill=0.0, limit=(end, None))
        tw.store(O[b, h, g, 0:W], (tw.sum(out, axis=0) / tw.sum(total, axis=0)).to(bf16))
    else:
        tw.assume(MP <= 8)
        q, h, b = tw.grid(tw.cdiv(G, 4), HK, B)
        g = q * 4
        end = tw.min(MP, tw.cdiv(lengths[b], PAGE))
        m = tw.full(f32, (4,), float("-inf"))
        for p in tw.range(end, unroll=4):
            m = tw.maximum(m, tw.load(MX[b, h, p, g : g + 4], fill=float("-inf")))
        out = tw.zeros(f32, (4, W))
        total = tw.zeros(f32, (4,))
        for p in tw.range(end, unroll=4):
            w = tw.exp2(tw.load(MX[b, h, p, g : g + 4], fill=float("-inf")) - m)
            total = total + w * tw.load(TOTAL[b, h, p, g : g + 4], fill=0.0)
            out = out + w[:, None] * tw.load(A[b, h, p, g : g + 4, 0:W], fill=0.0)
        tw.store(O[b, h, g : g + 4, 0:W], (out / total[:, None]).to(bf16))


@tw.program(
    computes="""
        let x[b, h, g, p, t] = scale * sum(d, f32(Q[b, h, g, d]) * f32(K[table[b, p], h, t, d]))
        O[b, h, g, d] = bf16(sum(p in 0:minimum(MP, (lengths[b] + PAGE - 1) // PAGE), sum(t in 0:minimum(PAGE, lengths[b] - p * PAGE), f32(bf16(exp2(x[b, h, g, p, t]))) * f32(V[table[b, p], h, t, d])))
                             / sum(p in 0:minimum(MP, (lengths[b] + PAGE - 1) // PAGE), sum(t in 0:minimum(PAGE, lengths[b] - p * PAGE), exp2(x[b, h, g, p, t]))))
    """
)
def decode_paged(
    Q: tw.Tensor(bf16, B, HK, G, D),
    K: tw.Tensor(bf16, PAGES, HK, PAGE, D),
    V: tw.Tensor(bf16, PAGES, HK, PAGE, D),
    table: tw.Tensor(i32, B, MP, range=PAGES),
    lengths: tw.Tensor(i32, B, range=(1, MP * PAGE + 1)),
    O: tw.Tensor(bf16, B, HK, G, D),
    scale: tw.scalar(f32, positive=True),
):
    MX = tw.buffer(f32, B, HK, MP, G)
    TOTAL = tw.buffer(f32, B, HK, MP, G)
    A = tw.buffer(f32, B, HK, MP, G, D)
    paged_parts(Q, K, V, table, lengths, MX, TOTAL, A, scale)
    paged_join(MX, TOTAL, A, lengths, O)
