"""Flash attention forward for Hopper: online softmax between two wgmma, probabilities stay in registers."""
import tilewright as tw
from tilewright import bf16, f32

B, H, S, T = tw.sizes("B H S T")
LN2 = 0.6931471805599453


@tw.kernel(
    target="sm_90a",
    name="attention",
    computes="""
        let s[b, h, i, j] = scale * LN2 * sum(d, f32(Q[b, h, i, d]) * f32(K[b, h, j, d]))
        O[b, h, i, d] = bf16(sum(j, exp(s[b, h, i, j]) * f32(V[b, h, j, d])) / sum(j, exp(s[b, h, i, j])))
        LSE[b, h, i] = logsumexp(j, s[b, h, i, j])
    """,
)
def attention(
    Q: tw.Tensor(bf16, B, H, S, D),
    K: tw.Tensor(bf16, B, H, T, D),
    V: tw.Tensor(bf16, B, H, T, D),
    O: tw.Tensor(bf16, B, H, S, D),
    LSE: tw.Tensor(f32, B, H, S),
    scale: tw.scalar(f32),  # softmax scale times log2(e)
    D: tw.const(64, 128) = 128,
    BN: tw.const(64, 128) = 128,
    STAGES: tw.const(2, 3) = 2,
):
    """128 query rows a block, 64 per consumer warpgroup; keys and values arrive through two rings."""
    bq, h, b = tw.grid(tw.cdiv(S, 128), H, B)
    tw.assume(T >= 1)
    sQ = tw.shared(bf16, (2, 64, D), swizzle=128)
    sK = tw.shared(bf16, (STAGES, BN, D), swizzle=128)
    sV = tw.shared(bf16, (STAGES, BN, D), swizzle=128)
    queries = tw.mbarrier(2)
    keys = tw.pipeline(STAGES, consumers=2)
    values = tw.pipeline(STAGES, consumers=2)
    tiles = tw.cdiv(T, BN)
    with tw.warpgroups(0, regs=24, name="producer"):
        for w in tw.unroll(2):
            queries[w].expect(64 * D * 2)
            tw.tma_load(sQ[w], Q[b, h, bq * 128 + w * 64, 0], on=queries[w])
        for t in tw.range(tiles):
            ks = keys.acquire()
            tw.tma_load(sK[ks], K[b, h, t * BN, 0], on=keys.full(ks))
            vs = values.acquire()
            tw.tma_load(sV[vs], V[b, h, t * BN, 0], on=values.full(vs))
    with tw.warpgroups(1, 2, regs=240, name="consumer") as w:
        queries[w].wait(0)
        top = tw.full(f32, (64,), float("-inf"))
        total = tw.zeros(f32, (64,))
        out = tw.zeros(f32, (64, D))
        for t in tw.range(tiles):
            ks = keys.wait()
            s = tw.zeros(f32, (64, BN))
            tw.wgmma(s, sQ[w], sK[ks].T)
            tw.wgmma_wait(0)
            keys.release()
            s = tw.where(tw.coord(s, 1) < T - t * BN, s * scale, float("-inf"))
            new_top = tw.maximum(top, tw.max(s, axis=1))
            p = tw.exp2(s - new_top[:, None])
            alpha = tw.exp2(top - new_top)
            total = total * alpha + tw.sum(p, axis=1)
            out = out * alpha[:, None]
            top = new_top
            vs = values.wait()
            tw.wgmma(out, p.to(bf16), sV[vs])
            tw.wgmma_wait(0)
            values.release()
        row = bq * 128 + w * 64
        tw.store(O[b, h, row, 0], (out / total[:, None]).to(bf16))
        tw.store(LSE[b, h, row : row + 64], (top + tw.log2(total)) * LN2)
