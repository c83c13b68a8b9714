"""Decoding with multi-head latent attention, in its absorbed form: all heads attend to one cache whose rows are keys, and whose first 512 elements are the values too.

A block has 64 heads. One consumer makes their scores, maxima and probabilities, 64 keys at a time, and leaves the probabilities in shared memory; two others add up the values, half of the columns each. A row of
the cache is read once for keys and values, in two halves, each with a ring of its own: a score begins with the first half, and a half is free again when its columns are added up.

mla_decode_whole gives a block all keys of a sequence. In mla_decode they are shared out to SPLITS blocks for each 64 heads; each leaves a maximum, a sum and a weighted sum of values, and a second launch joins them."""
import tilewright as tw
from tilewright import bf16, f32, i32

B, H, T = tw.sizes("B H T")  # sequences, heads, most keys of a sequence
SPLITS = 4


@tw.inline
def memory():
    """Shared memory and rings of a block: queries, both halves of the keys, probabilities, and the factors by which sums shrink when a maximum grows."""
    sQ = tw.shared(bf16, (64, 576), swizzle=128)
    return tw.record(
        sQ=sQ,
        sL=tw.shared(bf16, (2, 64, 256), swizzle=128),
        sR=tw.shared(bf16, (2, 64, 320), swizzle=128),
        sP=tw.shared(bf16, (1, 64, 64), swizzle=128),
        sF=tw.shared(f32, (1, 64)),
        queries=tw.pipeline(1),
        left=tw.pipeline(2, consumers=2),
        right=tw.pipeline(2, consumers=2),
        probs=tw.pipeline(1, consumers=2),
    )


@tw.inline
def bring(m, Q, K, b, bh, first, end):
    """The producer: the queries of 64 heads, then the keys first .. end, 64 at a time."""
    qs = m.queries.acquire()
    tw.tma_load(m.sQ, Q[b, bh * 64, 0], on=m.queries.full(qs))
    for i in tw.range(tw.cdiv(end - first, 64)):
        t = first + i * 64
        ls = m.left.acquire()
        tw.tma_load(m.sL[ls], K[b, t : t + 64, 0:256], on=m.left.full(ls))
        rs = m.right.acquire()
        tw.tma_load(m.sR[rs], K[b, t : t + 64, 256:576], on=m.right.full(rs))


@tw.inline
def attend(m, first, end, scale):
    """Probabilities of the keys first .. end, relative to the running maximum; the maxima and sums of 64 heads."""
    x = tw.zeros(f32, (64, 64))
    top = tw.full(f32, (64,), float("-inf"))
    total = tw.zeros(f32, (64,))
    m.queries.wait()
    for i in tw.range(tw.cdiv(end - first, 64)):
        ls = m.left.wait()
        tw.wgmma(x, m.sQ[:, 0:256], m.sL[ls].T, zero=True)
        rs = m.right.wait()
        tw.wgmma(x, m.sQ[:, 256:576], m.sR[rs].T)
        tw.wgmma_wait(0)
        m.left.release()
        m.right.release()
        seen = tw.coord(x, 1) < end - (first + i * 64)
        new_top = tw.maximum(top, tw.max(tw.where(seen, x * scale, float("-inf")), axis=1))
        e = tw.where(seen, tw.exp2(x * scale - new_top[:, None]), 0.0)
        alpha = tw.exp2(top - new_top)
        total = total * alpha + tw.sum(e, axis=1)
        top = new_top
        ps = m.probs.acquire()
        tw.store(m.sP[ps], e.to(bf16))
        tw.store(m.sF[ps], alpha)
        m.probs.commit(ps)
    m.queries.release()
    return top, total


@tw.inline
def add_up(keys, sV, probs, sP, sF, first, end, own):
    """Weighted sums of 256 columns of the values, in two tiles: one alone is more registers than a block of 512 threads starts with."""
    near = tw.zeros(f32, (64, 128))
    far = tw.zeros(f32, (64, 128))
    for i in tw.range(tw.cdiv(end - first, 64)):
        ks = keys.wait()
        ps = probs.wait()
        alpha = tw.load(sF[ps])
        near = near * alpha[:, None]
        far = far * alpha[:, None]
        tw.wgmma(near, sP[ps], sV[ks, :, 0:128])
        tw.wgmma(far, sP[ps], sV[ks, :, 128:256])
        tw.wgmma_wait(0)
        own.sync()
        keys.release()
        probs.release()
    return near, far


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
    """A block has all keys of a sequence: for sequences and heads that fill the GPU by themselves."""
    bh, b = tw.grid(tw.cdiv(H, 64), B)
    end = lengths[b]
    m = memory()
    sT = tw.shared(f32, (64,))
    totals = tw.pipeline(1, consumers=2)
    with tw.warpgroups(0, regs=24, name="producer"):
        bring(m, Q, K, b, bh, 0, end)
    with tw.warpgroups(1, regs=152, name="scores"):
        top, total = attend(m, 0, end, scale)
        ts = totals.acquire()
        tw.store(sT, total)
        totals.commit(ts)
    with tw.warpgroups(2, regs=160, name="left"):
        own = tw.named_barrier(4, 128)
        near, far = add_up(m.left, m.sL, m.probs, m.sP, m.sF, 0, end, own)
        totals.wait()
        total = tw.load(sT)
        own.sync()
        totals.release()
        tw.store(O[b, bh * 64 : bh * 64 + 64, 0:128], (near / total[:, None]).to(bf16))
        tw.store(O[b, bh * 64 : bh * 64 + 64, 128:256], (far / total[:, None]).to(bf16))
    with tw.warpgroups(3, regs=160, name="right"):
        own = tw.named_barrier(5, 128)
        near, far = add_up(m.right, m.sR, m.probs, m.sP, m.sF, 0, end, own)
        totals.wait()
        total = tw.load(sT)
        own.sync()
        totals.release()
        tw.store(O[b, bh * 64 : bh * 64 + 64, 256:384], (near / total[:, None]).to(bf16))
        tw.store(O[b, bh * 64 : bh * 64 + 64, 384:512], (far / total[:, None]).to(bf16))


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
    """A block has a part of the keys of a sequence."""
    s, bh, b = tw.grid(SPLITS, tw.cdiv(H, 64), B)
    first = s * (tw.cdiv(T, 64 * SPLITS) * 64)
    end = tw.min(tw.min(first + tw.cdiv(T, 64 * SPLITS) * 64, T), lengths[b])
    m = memory()
    with tw.warpgroups(0, regs=24, name="producer"):
        bring(m, Q, K, b, bh, first, end)
    with tw.warpgroups(1, regs=152, name="scores"):
        top, total = attend(m, first, end, scale)
        tw.store(MX[b, s, bh * 64 : bh * 64 + 64], top)
        tw.store(TOTAL[b, s, bh * 64 : bh * 64 + 64], total)
    with tw.warpgroups(2, regs=160, name="left"):
        own = tw.named_barrier(4, 128)
        near, far = add_up(m.left, m.sL, m.probs, m.sP, m.sF, first, end, own)
        tw.store(A[b, s, bh * 64 : bh * 64 + 64, 0:128], near)
        tw.store(A[b, s, bh * 64 : bh * 64 + 64, 128:256], far)
    with tw.warpgroups(3, regs=160, name="right"):
        own = tw.named_barrier(5, 128)
        near, far = add_up(m.right, m.sR, m.probs, m.sP, m.sF, first, end, own)
        tw.store(A[b, s, bh * 64 : bh * 64 + 64, 256:384], near)
        tw.store(A[b, s, bh * 64 : bh * 64 + 64, 384:512], far)


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
