"""Root-mean-square normalisation over rows."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.kernel(
    target="sm_80",
    computes="Y[m, n] = bf16(f32(X[m, n]) * rsqrt(mean(j, f32(X[m, j]) * f32(X[m, j])) + eps) * f32(gamma[n]))",
    threads=128,
)
def rmsnorm(
    X: tw.Tensor(bf16, M, N),
    gamma: tw.Tensor(bf16, N),
    Y: tw.Tensor(bf16, M, N),
    eps: tw.scalar(f32),
    BM: tw.const(1, 2, 4) = 4,
    BN: tw.const(512, 1024, 2048, 4096) = 1024,
):
    """Rows up to BN elements in registers."""
    tw.assume(N <= BN)
    tw.assume(N % 8 == 0)
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], fill=0.0).to(f32)
    scale = tw.rsqrt(tw.sum(x * x, axis=1) / N + eps)
    g = tw.load(gamma[0:BN], fill=0.0).to(f32)
    tw.store(Y[m : m + BM, 0:BN], (x * scale[:, None] * g[None, :]).to(bf16))
