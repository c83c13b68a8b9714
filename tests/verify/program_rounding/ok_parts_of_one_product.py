"""Both parts of one computed product."""
import tilewright as tw
from tilewright import f16, f32

N = tw.sizes("N")


@tw.kernel(threads=128, computes="""
    H[n] = f16(X[n] * S[n])
    L[n] = f16(X[n] * S[n] - f32(f16(X[n] * S[n])))""")
def parts(X: tw.Tensor(f32, N), S: tw.Tensor(f32, N), H: tw.Tensor(f16, N), L: tw.Tensor(f16, N)):
    b = tw.grid(tw.cdiv(N, 128))
    x = tw.load(X[b * 128 : b * 128 + 128], fill=0.0)
    s = tw.load(S[b * 128 : b * 128 + 128], fill=0.0)
    a = x * s
    c = a
    tw.store(H[b * 128 : b * 128 + 128], a.to(f16))
    tw.store(L[b * 128 : b * 128 + 128], (c - c.to(f16).to(f32)).to(f16))


@tw.kernel(threads=128, computes="Y[n] = f32(H[n]) + f32(L[n])")
def join(H: tw.Tensor(f16, N), L: tw.Tensor(f16, N), Y: tw.Tensor(f32, N)):
    b = tw.grid(tw.cdiv(N, 128))
    h = tw.load(H[b * 128 : b * 128 + 128], fill=0.0)
    l = tw.load(L[b * 128 : b * 128 + 128], fill=0.0)
    tw.store(Y[b * 128 : b * 128 + 128], h.to(f32) + l.to(f32))


@tw.program(computes="Y[n] = X[n] * S[n]")
def whole(X: tw.Tensor(f32, N), S: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    h = tw.buffer(f16, N)
    l = tw.buffer(f16, N)
    parts(X, S, h, l)
    join(h, l, Y)
