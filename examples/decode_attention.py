"""Attention of one query to T keys, online, without matrix instructions: a first version to start from. It is proved."""
import tilewright as tw
from tilewright import f32

B, T = tw.sizes("B T")
LOG2E = 1.4426950408889634


@tw.kernel(target="sm_80", computes="""
let s[b, t] = sum(d, Q[b, d] * Kk[b, t, d]) * scale
O[b, d] = sum(t, exp(s[b, t] - max(u, s[b, u])) * V[b, t, d]) / sum(t, exp(s[b, t] - max(u, s[b, u])))""", threads=128)
def decode(Q: tw.Tensor(f32, B, 64), Kk: tw.Tensor(f32, B, T, 64), V: tw.Tensor(f32, B, T, 64), O: tw.Tensor(f32, B, 64), scale: tw.scalar(f32)):
    b = tw.grid(B)
    q = tw.load(Q[b, 0:64])
    top = tw.full(f32, (), float("-inf"))
    total = tw.zeros(f32, ())
    o = tw.zeros(f32, (64,))
    for c in tw.range(tw.cdiv(T, 32)):
        k = tw.load(Kk[b, c * 32 : c * 32 + 32, 0:64], fill=0.0)
        s = tw.sum(k * q[None, :], axis=1) * scale
        s = tw.where(tw.arange(32) + c * 32 < T, s, float("-inf"))
        new = tw.maximum(top, tw.max(s, axis=0))
        p = tw.exp2((s - new) * LOG2E)
        f = tw.exp2((top - new) * LOG2E)
        total = total * f + tw.sum(p, axis=0)
        v = tw.load(V[b, c * 32 : c * 32 + 32, 0:64], fill=0.0)
        o = o * f + tw.sum(v * p[:, None], axis=0)
        top = new
    tw.store(O[b, 0:64], o / total)
