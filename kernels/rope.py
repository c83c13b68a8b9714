"""Rotary position embedding, halves form: element h of a head is turned with element h + D/2 by the angle of its token."""
import tilewright as tw
from tilewright import bf16, f32

L, H, D = tw.sizes("L H D")     # tokens, heads, half of a head's length
T = tw.parameters("T")

@tw.signature(
    target="sm_80",
    computes="""
        Y[t, h, p, d] = where(p == 0, f32(X[t, h, 0, d]) * f32(cosine[t, d]) - f32(X[t, h, 1, d]) * f32(sine[t, d]),
                              f32(X[t, h, 1, d]) * f32(cosine[t, d]) + f32(X[t, h, 0, d]) * f32(sine[t, d]))
    """,
    threads=256,
)
def rope(X: tw.Tensor(T, L, H, 2, D), cosine: tw.Tensor(T, L, D), sine: tw.Tensor(T, L, D), Y: tw.Tensor(T, L, H, 2, D), T: tw.each(bf16, f32)):
    """Pairs turned by an angle that grows with the position."""


@tw.kernel(rope)
def rope_aligned(X, cosine, sine, Y, T, BH: tw.const(16, 32, 64) = 32, BD: tw.const(32, 64, 128) = 64):
    """All heads of a token side by side; the token's sines and cosines are read once a block. Halves of whole vectors."""
    tw.assume(D % (16 // T.bytes) == 0)
    bd, bh, t = tw.grid(tw.cdiv(D, BD), tw.cdiv(H, BH), L)
    h = bh * BH
    d = bd * BD
    c = tw.load(cosine[t, d : d + BD], fill=0.0).to(f32)[None, :]
    s = tw.load(sine[t, d : d + BD], fill=0.0).to(f32)[None, :]
    a = tw.load(X[t, h : h + BH, 0, d : d + BD], fill=0.0).to(f32)
    b = tw.load(X[t, h : h + BH, 1, d : d + BD], fill=0.0).to(f32)
    tw.store(Y[t, h : h + BH, 0, d : d + BD], (a * c - b * s).to(Y.dtype))
    tw.store(Y[t, h : h + BH, 1, d : d + BD], (b * c + a * s).to(Y.dtype))


@tw.kernel(rope)
def rope_any(X, cosine, sine, Y, T, BH: tw.const(16, 32) = 16, BD: tw.const(32, 64) = 64):
    """Halves of any length, one element a lane."""
    bd, bh, t = tw.grid(tw.cdiv(D, BD), tw.cdiv(H, BH), L)
    h = bh * BH
    d = bd * BD
    c = tw.load(cosine[t, d : d + BD], fill=0.0).to(f32)[None, :]
    s = tw.load(sine[t, d : d + BD], fill=0.0).to(f32)[None, :]
    a = tw.load(X[t, h : h + BH, 0, d : d + BD], fill=0.0, layout=tw.blocked(vector=1)).to(f32)
    b = tw.load(X[t, h : h + BH, 1, d : d + BD], fill=0.0).to(f32)
    tw.store(Y[t, h : h + BH, 0, d : d + BD], (a * c - b * s).to(Y.dtype))
    tw.store(Y[t, h : h + BH, 1, d : d + BD], (b * c + a * s).to(Y.dtype))
