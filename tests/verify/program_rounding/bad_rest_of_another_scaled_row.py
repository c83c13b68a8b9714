"""The rest is of another computation of the scaled row."""
import tilewright as tw
from tilewright import f16, f32

M = tw.sizes("M")


@tw.kernel(threads=128, computes="""
    let top[m] = floor(log2(maximum(max(k in 0:256, abs(X[m, k])), 1.0e-30)))
    D[m] = exp2(top[m] - 14)
    H[m, k] = f16(X[m, k] * exp2(14 - top[m]))
    L[m, k] = f16(X[m, k] * exp2(14 - top[m]) - f32(f16(X[m, k] * exp2(14 - top[m]))))""")
def parts(X: tw.Tensor(f32, M, 256), D: tw.Tensor(f32, M), H: tw.Tensor(f16, M, 256), L: tw.Tensor(f16, M, 256)):
    b = tw.grid(tw.cdiv(M, 4))
    x = tw.load(X[b * 4 : b * 4 + 4, 0:256], fill=0.0)
    top = tw.floor(tw.log2(tw.maximum(tw.max(tw.abs(x), axis=1), 1.0e-30)))
    tw.store(D[b * 4 : b * 4 + 4], tw.exp2(top - 14.0))
    scaled = x * tw.exp2(14.0 - top)[:, None]
    high = scaled.to(f16)
    again = (x * 3.0) * (tw.exp2(14.0 - top) / 3.0)[:, None]
    tw.store(H[b * 4 : b * 4 + 4, 0:256], high)
    tw.store(L[b * 4 : b * 4 + 4, 0:256], (again - again.to(f16).to(f32)).to(f16))


@tw.kernel(threads=128, computes="Y[m, k] = D[m] * (f32(H[m, k]) + f32(L[m, k]))")
def join(D: tw.Tensor(f32, M), H: tw.Tensor(f16, M, 256), L: tw.Tensor(f16, M, 256), Y: tw.Tensor(f32, M, 256)):
    b = tw.grid(tw.cdiv(M, 4))
    d = tw.load(D[b * 4 : b * 4 + 4], fill=0.0)
    high = tw.load(H[b * 4 : b * 4 + 4, 0:256], fill=0.0)
    low = tw.load(L[b * 4 : b * 4 + 4, 0:256], fill=0.0)
    tw.store(Y[b * 4 : b * 4 + 4, 0:256], d[:, None] * (high.to(f32) + low.to(f32)))


@tw.program(computes="Y[m, k] = X[m, k]")
def whole(X: tw.Tensor(f32, M, 256), Y: tw.Tensor(f32, M, 256)):
    d = tw.buffer(f32, M)
    h = tw.buffer(f16, M, 256)
    l = tw.buffer(f16, M, 256)
    parts(X, d, h, l)
    join(d, h, l, Y)
