"""Bias and GELU over the rows of a matrix: elementwise with a broadcast row."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")
SQRT_HALF = 0.7071067811865476


@tw.inline
def gelu(x):
    return 0.5 * x * (1.0 + tw.erf(x * SQRT_HALF, approx=True))


@tw.kernel(target="sm_80", name="bias_gelu", computes="Y[m, n] = bf16(gelu(f32(X[m, n]) + f32(bias[n])))", threads=128, blocks_per_sm=16)
def bias_gelu_aligned(
    X: tw.Tensor(bf16, M, N), bias: tw.Tensor(bf16, N), Y: tw.Tensor(bf16, M, N), BM: tw.const(2, 4, 8, 16) = 4, BN: tw.const(256, 512) = 256
):
    """Rows of 16-byte vectors."""
    tw.assume(N % 8 == 0)
    bn, bm = tw.grid(tw.cdiv(N, BN), tw.cdiv(M, BM))
    m = bm * BM
    n = bn * BN
    x = tw.load(X[m : m + BM, n : n + BN], fill=0.0).to(f32)
    b = tw.load(bias[n : n + BN], fill=0.0).to(f32)
    tw.store(Y[m : m + BM, n : n + BN], gelu(x + b[None, :]).to(bf16))


@tw.kernel(target="sm_80", name="bias_gelu", computes="Y[m, n] = bf16(gelu(f32(X[m, n]) + f32(bias[n])))", threads=96, blocks_per_sm=20)
def bias_gelu_shifted(X: tw.Tensor(bf16, M, N), bias: tw.Tensor(bf16, N), Y: tw.Tensor(bf16, M, N), R: tw.const(4, 8, 16) = 4):
    """Rows of any pitch, from the multiple of 128 bytes at or before their start. Every 64th row lies alike, so R of them share the bias, which is read one element at a time."""
    BN = 768
    j, bn, group = tw.grid(64, tw.cdiv(N + 63, BN), tw.cdiv(M, 64 * R))
    n = bn * BN - j * (N % 64) % 64
    b = tw.load(bias[n : n + BN], fill=0.0).to(f32)
    for r in tw.range(R, unroll=False):
        m = group * (64 * R) + r * 64 + j
        if m < M:
            x = tw.load(X[m, n : n + BN], fill=0.0).to(f32)
            tw.store(Y[m, n : n + BN], gelu(x + b).to(bf16))
