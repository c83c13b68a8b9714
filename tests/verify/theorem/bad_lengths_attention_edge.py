"""One key too many."""
import tilewright as tw
from tilewright import f32, i32

B, H, N = tw.sizes("B H N")


@tw.kernel(target="sm_80", computes="""
let s[b, h, t] = sum(d, Q[b, h, d] * K_[b, h // 4, t, d]) * scale
O[b, h, d] = sum(t in 0:len[b], exp(s[b, h, t] - max(u in 0:len[b], s[b, h, u])) * V[b, h // 4, t, d]) / sum(t in 0:len[b], exp(s[b, h, t] - max(u in 0:len[b], s[b, h, u])))""", threads=128)
def lengths_attention_edge(Q: tw.Tensor(f32, B, 4 * H, 64), K_: tw.Tensor(f32, B, H, N, 64), V: tw.Tensor(f32, B, H, N, 64), len: tw.Tensor(i32, B, range=(1, N + 1)), O: tw.Tensor(f32, B, 4 * H, 64), scale: tw.scalar(f32)):
    h, b = tw.grid(4 * H, B)
    end = len[b]
    q = tw.load(Q[b, h, 0:64])
    top = tw.full(f32, (), float("-inf"))
    total = tw.zeros(f32, ())
    o = tw.zeros(f32, (64,))
    for c in tw.range(tw.cdiv(end, 32)):
        k = tw.load(K_[b, h // 4, c * 32 : c * 32 + 32, 0:64], fill=0.0)
        s = tw.sum(k * q[None, :], axis=1) * scale
        s = tw.where(tw.arange(32) + c * 32 <= end, s, float("-inf"))
        new = tw.maximum(top, tw.max(s, axis=0))
        p = tw.exp(s - new)
        f = tw.exp(top - new)
        total = total * f + tw.sum(p, axis=0)
        v = tw.load(V[b, h // 4, c * 32 : c * 32 + 32, 0:64], fill=0.0)
        o = o * f + tw.sum(v * p[:, None], axis=0)
        top = new
    tw.store(O[b, h, 0:64], o / total)
