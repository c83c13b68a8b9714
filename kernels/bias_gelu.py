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
    """Rows of 16-byte vectors; sizes whose rows are not aligned are served by the variant below."""
    tw.assume(N % 8 == 0)
    bn, bm = tw.grid(tw.cdiv(N, BN), tw.cdiv(M, BM))
    m = bm * BM
    n = bn * BN
    x = tw.load(X[m : m + BM, n : n + BN], fill=0.0).to(f32)
    b = tw.load(bias[n : n + BN], fill=0.0).to(f32)
    tw.store(Y[m : m + BM, n : n + BN], gelu(x + b[None, :]).to(bf16))


@tw.kernel(target="sm_80", name="bias_gelu", computes="Y[m, n] = bf16(gelu(f32(X[m, n]) + f32(bias[n])))", threads=256)
def bias_gelu_any(
    X: tw.Tensor(bf16, M, N), bias: tw.Tensor(bf16, N), Y: tw.Tensor(bf16, M, N), BM: tw.const(4, 8, 16) = 4, BN: tw.const(256, 512) = 512
):
    """Any row length, one element at a time."""
    bn, bm = tw.grid(tw.cdiv(N, BN), tw.cdiv(M, BM))
    m = bm * BM
    n = bn * BN
    x = tw.load(X[m : m + BM, n : n + BN], fill=0.0).to(f32)
    b = tw.load(bias[n : n + BN], fill=0.0).to(f32)
    tw.store(Y[m : m + BM, n : n + BN], gelu(x + b[None, :]).to(bf16))
