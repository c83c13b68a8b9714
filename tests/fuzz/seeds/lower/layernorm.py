"""Layer normalisation over rows, with scale and shift."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(
    target="sm_80",
    computes="""
        let mu[m] = mean(n, f32(X[m, n]))
        let variance[m] = mean(n, (f32(X[m, n]) - mu[m]) ** 2)
        Y[m, n] = bf16((f32(X[m, n]) - mu[m]) * rsqrt(variance[m] + eps) * f32(gamma[n]) + f32(beta[n]))
    """,
    threads=128,
)
def layernorm(
    X: tw.Tensor(bf16, M, N),
    gamma: tw.Tensor(bf16, N),
    beta: tw.Tensor(bf16, N),
    Y: tw.Tensor(bf16, M, N),
    eps: tw.scalar(f32),
    BM: tw.const(1, 2, 4) = 4,
    BN: tw.const(512, 1024, 2048, 4096) = 1024,
):
    """Rows up to BN elements in registers; two passes over registers, one over memory."""
    tw.assume(N <= BN)
    tw.assume(N % 8 == 0)
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], fill=0.0).to(f32)
    mu = tw.sum(x, axis=1) / N
    centred = tw.where(tw.coord(x, 1) < N, x - mu[:, None], 0.0)
    variance = tw.sum(centred * centred, axis=1) / N
    scale = tw.rsqrt(variance + eps)
    g = tw.load(gamma[0:BN], fill=0.0).to(f32)
    b = tw.load(beta[0:BN], fill=0.0).to(f32)
    tw.store(Y[m : m + BM, 0:BN], (centred * scale[:, None] * g[None, :] + b[None, :]).to(bf16))
