# expect: TW1002
# hint: -
# rebuilds: flash attention with a mask: a key tile that a row does not see at all makes exp(-inf + inf)
"""Attention to a sliding window of keys, online, from the first key tile to the last: rows whose window has not begun yet see none of a tile, and their maximum is still -inf."""
import tilewright as tw
from tilewright import bf16, f32

B, H, S = tw.sizes("B H S")


@tw.kernel(target="sm_80", threads=128, computes="""
    let s[b, h, i, j] = scale * sum(d, f32(Q[b, h, i, d]) * f32(K[b, h, j, d]))
    O[b, h, i, d] = bf16(sum(j in maximum(0, i - W + 1):i + 1, f32(bf16(exp(s[b, h, i, j]))) * f32(V[b, h, j, d])) / sum(j in maximum(0, i - W + 1):i + 1, exp(s[b, h, i, j])))
""")
def window(Q: tw.Tensor(bf16, B, H, S, D), K: tw.Tensor(bf16, B, H, S, D), V: tw.Tensor(bf16, B, H, S, D), O: tw.Tensor(bf16, B, H, S, D), scale: tw.scalar(f32),
           W: tw.const(64, 128) = 64, D: tw.const(64, 128) = 64, BM: tw.const(64) = 64, BN: tw.const(64) = 64):
    m, h, b = tw.grid(tw.cdiv(S, BM), H, B)
    sQ = tw.shared(bf16, (BM, D), swizzle=128)
    sK = tw.shared(bf16, (BN, D), swizzle=128)
    sV = tw.shared(bf16, (BN, D), swizzle=128)
    tw.store(sQ, tw.load(Q[b, h, m * BM : m * BM + BM, 0:D], fill=0.0))
    out = tw.zeros(f32, (BM, D), layout=tw.mma_c(warps=(4, 1)))
    top = tw.full(f32, (BM,), float("-inf"))
    total = tw.zeros(f32, (BM,))
    first = tw.max(0, m * BM - W + 1) // BN
    for t in tw.range(first, m + 1):
        tw.sync()
        tw.store(sK, tw.load(K[b, h, t * BN : t * BN + BN, 0:D], fill=0.0))
        tw.store(sV, tw.load(V[b, h, t * BN : t * BN + BN, 0:D], fill=0.0))
        tw.sync()
        s = tw.zeros(f32, (BM, BN), layout=tw.mma_c(warps=(4, 1)))
        tw.mma(s, tw.load(sQ, layout=tw.mma_a()), tw.load(sK, layout=tw.mma_b()))
        i = tw.coord(s, 0) + m * BM
        j = tw.coord(s, 1) + t * BN
        see = (j <= i) & (j > i - W)
        z = tw.where(see, s * scale, float("-inf"))
        new = tw.maximum(top, tw.max(z, axis=1))
        e = tw.exp(z - new[:, None])
        alpha = tw.exp(top - new)
        total = total * alpha + tw.sum(e, axis=1)
        out = out * alpha[:, None]
        tw.mma(out, e.to(bf16), tw.load(sV.T, layout=tw.mma_b()))
        top = new
    out = out / total[:, None]
    tw.store(O[b, h, m * BM : m * BM + BM, 0:D], out.to(bf16))  # here
