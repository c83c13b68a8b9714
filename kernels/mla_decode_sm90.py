"""Decoding with multi-head latent attention, in its absorbed form: all heads attend to one cache whose rows are keys, and whose first 512 elements are the values too.

mla_decode_whole gives a block all keys of a sequence. In mla_decode they are shared out to SPLITS blocks for each 64 heads; each leaves a maximum, a sum and a weighted sum of values, and a second launch joins them. A row of the cache is
read once for keys and values."""
import tilewright as tw
from tilewright import bf16, f32, i32

B, H, T = tw.sizes("B H T")  # sequences, heads, most keys of a sequence
SPLITS = 4


@tw.inline
def bring(queries, keys, sQ, sK, Q, K, b, bh, first, end):
    """The producer: 64 heads' queries, then the keys first .. end, 64 at a time."""
    qs = queries.acquire()
    tw.tma_load(sQ, Q[b, bh * 64, 0], on=queries.full(qs))
    for i in tw.range(tw.cdiv(end - first, 64)):
        ks = keys.acquire()
        tw.tma_load(sK[ks], K[b, first + i * 64, 0], on=keys.full(ks))


@tw.inline
def attend(queries, keys, sQ, sK, w, first, end, scale):
    """A consumer: weighted sums of its half of the values' columns, maxima and sums of 64 heads."""
    out = tw.zeros(f32, (64, 256))
    x = tw.zeros(f32, (64, 64))
    top = tw.full(f32, (64,), float("-inf"))
    total = tw.zeros(f32, (64,))
    queries.wait()
    for i in tw.range(tw.cdiv(end - first, 64)):
        ks = keys.wait()
        tw.wgmma(x, sQ, sK[ks].T, zero=True)
        tw.wgmma_wait(0)
        seen = tw.coord(x, 1) < end - (first + i * 64)
        new_top = tw.maximum(top, tw.max(tw.where(seen, x * scale, float("-inf")), axis=1))
        e = tw.where(seen, tw.exp2(x * scale - new_top[:, None]), 0.0)
        alpha = tw.exp2(top - new_top)
        total = total * alpha + tw.sum(e, axis=1)
        out = out * alpha[:, None]
        top = new_top
        tw.wgmma(out, e.to(bf16), sK[ks, :, w * 256 : (w + 1) * 256])
        tw.wgmma_wait(0)
        keys.release()
    queries.release()
    return out, top, total


@tw.kernel(
    target="sm_90a",
    name="mla_decode_whole",
    computes="""
        let x[b, h, t] = scale * sum(d, f32(Q[b, h, d]) * f32(K[b, t, d]))
        O[b, h, d in 0:512] = bf16(sum(t in 0:minimum(T, lengths[b]), f32(bf16(exp2(x[b, h, t]))) * f32(K[b, t, d])) / sum(t in 0:minimum(T, lengths[b]), exp2(x[b, h, t])))
    """,
    dependent_launch=True,
)
def mla_decode_whole(
    Q: tw.Tensor(bf16, B, H, 576),
    K: tw.Tensor(bf16, B, T, 576),
    lengths: tw.Tensor(i32, B, range=(1, T + 1)),
    O: tw.Tensor(bf16, B, H, 512),
    scale: tw.scalar(f32, positive=True),  # softmax scale times log2(e)
):
    """A block has all keys of a sequence: for sequences and heads that fill the GPU by themselves. Two consumers both make the probabilities of 64 keys; each adds up half of the values' columns."""
    bh, b = tw.grid(tw.cdiv(H, 64), B)
    end = lengths[b]
    sQ = tw.shared(bf16, (64, 576), swizzle=128)
    sK = tw.shared(bf16, (2, 64, 576), swizzle=128)
    queries = tw.pipeline(1, consumers=2)
    keys = tw.pipeline(2, consumers=2)
    with tw.warpgroups(0, regs=24, name="producer"):
        bring(queries, keys, sQ, sK, Q, K, b, bh, 0, end)
    with tw.warpgroups(1, 2, regs=240, name="consumer") as w:
        out, top, total = attend(queries, keys, sQ, sK, w, 0, end, scale)
        tw.store(O[b, bh * 64 : bh * 64 + 64, w * 256 : w * 256 + 256], (out / total[:, None]).to(bf16))


@tw.kernel(
    target="sm_90a",
    name="mla_parts",
    computes="""
        let x[b, h, t] = scale * sum(d, f32(Q[b, h, d]) * f32(K[b, t, d]))
        let top[b, s, h] = max(t in s * (((T + 64 * SPLITS - 1) // (64 * SPLITS)) * 64) : minimum(minimum((s + 1) * (((T + 64 * SPLITS - 1) // (64 * SPLITS)) * 64), T), lengths[b]), x[b, h, t])
        MX[b, s, h] = top[b, s, h]
        TOTAL[b, s, h] = sum(t in s * (((T + 64 * SPLITS - 1) // (64 * SPLITS)) * 64) : minimum(minimum((s + 1) * (((T + 64 * SPLITS - 1) // (64 * SPLITS)) * 64), T), lengths[b]),
                             exp2(x[b, h, t] - top[b, s, h]))
        A[b, s, h, d in 0:512] = sum(t in s * (((T + 64 * SPLITS - 1) // (64 * SPLITS)) * 64) : minimum(minimum((s + 1) * (((T + 64 * SPLITS - 1) // (64 * SPLITS)) * 64), T), lengths[b]),
                                     f32(bf16(exp2(x[b, h, t] - top[b, s, h]))) * f32(K[b, t, d]))
    """,
    dependent_launch=True,
)
def mla_parts(
    Q: tw.Tensor(bf16, B, H, 576),
    K: tw.Tensor(bf16, B, T, 576),
    lengths: tw.Tensor(i32, B, range=(1, T + 1)),
    MX: tw.Tensor(f32, B, SPLITS, H),
    TOTAL: tw.Tensor(f32, B, SPLITS, H),
    A: tw.Tensor(f32, B, SPLITS, H, 512),
    scale: tw.scalar(f32, positive=True),  # softmax scale times log2(e)
):
    """64 heads a block. Two consumers both make the probabilities of 64 keys; each adds up half of the values' columns."""
    s, bh, b = tw.grid(SPLITS, tw.cdiv(H, 64), B)
    first = s * (tw.cdiv(T, 64 * SPLITS) * 64)
    end = tw.min(tw.min(first + tw.cdiv(T, 64 * SPLITS) * 64, T), lengths[b])
    sQ = tw.shared(bf16, (64, 576), swizzle=128)
    sK = tw.shared(bf16, (2, 64, 576), swizzle=128)
    queries = tw.pipeline(1, consumers=2)
    keys = tw.pipeline(2, consumers=2)
    with tw.warpgroups(0, regs=24, name="producer"):
        bring(queries, keys, sQ, sK, Q, K, b, bh, first, end)
    with tw.warpgroups(1, 2, regs=240, name="consumer") as w:
        out, top, total = attend(queries, keys, sQ, sK, w, first, end, scale)
        if w == 0:
            tw.store(MX[b, s, bh * 64 : bh * 64 + 64], top)
            tw.store(TOTAL[b, s, bh * 64 : bh * 64 + 64], total)
        tw.store(A[b, s, bh * 64 : bh * 64 + 64, w * 256 : w * 256 + 256], out)


@tw.kernel(
    target="sm_90a",
    name="mla_join",
    computes="""
        let w[b, s, h] = exp2(MX[b, s, h] - max(r in 0:SPLITS, MX[b, r, h]))
        O[b, h, d] = sum(s in 0:SPLITS, w[b, s, h] * A[b, s, h, d]) / sum(s in 0:SPLITS, w[b, s, h] * TOTAL[b, s, h])
    """,
    threads=128,
    dependent_launch=True,
)
def mla_join(MX: tw.Tensor(f32, B, SPLITS, H), TOTAL: tw.Tensor(f32, B, SPLITS, H), A: tw.Tensor(f32, B, SPLITS, H, 512), O: tw.Tensor(bf16, B, H, 512)):
    """The parts of a head, each times what its maximum is below the largest."""
    h, b = tw.grid(H, B)
    m = tw.load(MX[b, 0:SPLITS, h])
    w = tw.exp2(m - tw.max(m, axis=0))
    total = tw.sum(w * tw.load(TOTAL[b, 0:SPLITS, h]), axis=0)
    out = tw.sum(w[:, None] * tw.load(A[b, 0:SPLITS, h, 0:512]), axis=0)
    tw.store(O[b, h, 0:512], (out / total).to(bf16))


@tw.program(
    computes="""
        let x[b, h, t] = scale * sum(d, f32(Q[b, h, d]) * f32(K[b, t, d]))
        O[b, h, d in 0:512] = bf16(sum(t in 0:minimum(T, lengths[b]), f32(bf16(exp2(x[b, h, t]))) * f32(K[b, t, d])) / sum(t in 0:minimum(T, lengths[b]), exp2(x[b, h, t])))
    """
)
def mla_decode(
    Q: tw.Tensor(bf16, B, H, 576),
    K: tw.Tensor(bf16, B, T, 576),
    lengths: tw.Tensor(i32, B, range=(1, T + 1)),
    O: tw.Tensor(bf16, B, H, 512),
    scale: tw.scalar(f32, positive=True),
):
    MX = tw.buffer(f32, B, SPLITS, H)
    TOTAL = tw.buffer(f32, B, SPLITS, H)
    A = tw.buffer(f32, B, SPLITS, H, 512)
    mla_parts(Q, K, lengths, MX, TOTAL, A, scale)
    mla_join(MX, TOTAL, A, O)
