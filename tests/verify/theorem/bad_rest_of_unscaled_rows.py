"""The rest of the number before it was scaled."""
import tilewright as tw
from tilewright import bf16, f16, f32

M, N = tw.sizes("M N")


@tw.kernel(
    target="sm_80",
    computes="""
        let top[m in 0:M] = floor(log2(maximum(max(n, abs(X[m, n])), 1.0e-30)))
        H[m, n] = f16(X[m, n] * exp2(14 - top[m]))
        L[m, n] = f16(X[m, n] * exp2(14 - top[m]) - f32(f16(X[m, n] * exp2(14 - top[m]))))
    """,
    threads=64,
)
def rest(X: tw.Tensor(f32, M, N), H: tw.Tensor(f16, M, N), L: tw.Tensor(f16, M, N)):
    tw.assume(N <= 256)
    m = tw.grid(M)
    x = tw.load(X[m, 0:256], fill=0.0)
    top = tw.max(tw.where(tw.arange(256) < N, tw.abs(x), float("-inf")), axis=0)
    exponent = tw.floor(tw.log2(tw.maximum(top, 1.0e-30)))
    scaled = x * tw.exp2(14.0 - exponent)
    h = scaled.to(f16)
    tw.store(H[m, 0:256], h)
    tw.store(L[m, 0:256], (x - x.to(f16).to(f32)).to(f16))
