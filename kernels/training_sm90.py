"""What a training step needs beside products and norms: the loss with its gradient, the gradient of an embedding, the step of Adam."""
import tilewright as tw
from tilewright import bf16, f32, i32

M, N, V, P, L = tw.sizes("M N V P L")
T = tw.parameters("T")
LOG2E = 1.4426950408889634
LN2 = 0.6931471805599453
LOWEST = -3.4028234663852886e38  # a floor for maxima of parts of a row: a part of nothing but -inf must not make inf - inf


@tw.kernel(
    target="sm_90a",
    name="cross_entropy_gradient",
    computes="""
        let s[m] = logsumexp(n, f32(X[m, n]))
        loss[m] = s[m] - f32(X[m, target[m]])
        DX[m, n] = T((exp(f32(X[m, n]) - s[m]) - where(n == target[m], 1, 0)) * scale)
    """,
    threads=512,
    blocks_per_sm=2,
)
def cross_entropy_gradient(
    X: tw.Tensor(T, M, N),
    target: tw.Tensor(i32, M, range=N),
    loss: tw.Tensor(f32, M),
    DX: tw.Tensor(T, M, N),
    scale: tw.scalar(f32),  # of the loss: 1 / M for a mean
    T: tw.each(bf16, f32),
    BN: tw.const(2048, 4096) = 4096,
):
    """A block a row. Every lane has a maximum of its own for each of its places, so that nobody meets before the end of the first pass; the second pass finds the row in L2."""
    tw.assume(N % (16 // T.bytes) == 0)
    m = tw.grid(M)
    label = tw.load(target[m])
    top = tw.full(f32, (BN,), LOWEST)
    total = tw.zeros(f32, (BN,))
    for c in tw.range(tw.cdiv(N, BN), unroll=2):
        x = tw.load(X[m, c * BN : c * BN + BN], fill=float("-inf")).to(f32)
        new_top = tw.maximum(top, x)
        total = total * tw.exp2((top - new_top) * LOG2E, approx=True) + tw.exp2((x - new_top) * LOG2E, approx=True)
        top = new_top
    whole = tw.max(top, axis=0)
    s = whole + tw.log2(tw.sum(total * tw.exp2((top - whole) * LOG2E), axis=0)) * LN2
    tw.store(loss[m], s - tw.load(X[m, target[m]]).to(f32))
    for c in tw.range(tw.cdiv(N, BN), unroll=2):
        x = tw.load(X[m, c * BN : c * BN + BN], fill=0.0, hint="evict_first").to(f32)
        hit = tw.where(tw.arange(BN) + c * BN == label, 1.0, 0.0)
        tw.store(DX[m, c * BN : c * BN + BN], ((tw.exp2((x - s) * LOG2E, approx=True) - hit) * scale).to(T), hint="streaming")


@tw.kernel(
    target="sm_90a",
    name="embedding_gradient",
    computes="DW[v in 0:V, n] = sum(p in starts[v]:starts[v + 1], f32(DY[order[p], n]))",
    threads=128,
)
def embedding_gradient(
    DY: tw.Tensor(T, L, N),
    order: tw.Tensor(i32, P, range=L),  # the positions, sorted by their token
    token: tw.Tensor(i32, P),  # their tokens
    starts: tw.Tensor(i32, V + 1, offsets_of="token"),  # where each token's positions begin
    DW: tw.Tensor(f32, V, N),
    T: tw.each(bf16, f32),
    BE: tw.const(512, 1024) = 1024,
):
    """A block a row of the table: it adds up its token's rows, always in the same order, and writes zeros where there are none."""
    tw.assume(N % (16 // T.bytes) == 0)
    b, v = tw.grid(tw.cdiv(N, BE), V)
    total = tw.zeros(f32, (BE,))
    for p in tw.range(starts[v], starts[v + 1]):
        total = total + tw.load(DY[order[p], b * BE : b * BE + BE], fill=0.0).to(f32)
    tw.store(DW[v, b * BE : b * BE + BE], total)


@tw.kernel(
    target="sm_90a",
    name="adam",
    computes="""
        let u[n] = beta1 * m[n] + (1 - beta1) * f32(G[n])
        let q[n] = beta2 * v[n] + (1 - beta2) * f32(G[n]) * f32(G[n])
        let x[n] = w[n] - rate * (u[n] * fix1 / (sqrt(maximum(q[n] * fix2, 0)) + eps) + decay * w[n])
        m[n] = u[n]
        v[n] = q[n]
        w[n] = x[n]
        W[n] = bf16(x[n])
    """,
    threads=256,
)
def adam(
    G: tw.Tensor(T, N),
    m: tw.Tensor(f32, N),
    v: tw.Tensor(f32, N),
    w: tw.Tensor(f32, N),
    W: tw.Tensor(bf16, N),
    beta1: tw.scalar(f32),
    beta2: tw.scalar(f32),
    rate: tw.scalar(f32),
    fix1: tw.scalar(f32),  # 1 / (1 - beta1^step)
    fix2: tw.scalar(f32),  # 1 / (1 - beta2^step)
    eps: tw.scalar(f32),
    decay: tw.scalar(f32),
    T: tw.each(bf16, f32),
    BA: tw.const(1024, 2048) = 1024,
):
    """AdamW on flat f32 parameters, with the bf16 copy that the next forward pass reads. State and parameters are updated in place."""
    tw.assume(N % 8 == 0)
    i = tw.grid(tw.cdiv(N, BA)) * BA
    g = tw.load(G[i : i + BA], fill=0.0, hint="streaming", layout=tw.blocked(vector=4)).to(f32)
    x = tw.load(w[i : i + BA], fill=0.0, hint="streaming")
    u = beta1 * tw.load(m[i : i + BA], fill=0.0, hint="streaming") + (1.0 - beta1) * g
    q = beta2 * tw.load(v[i : i + BA], fill=0.0, hint="streaming") + (1.0 - beta2) * g * g
    x = x - rate * (u * fix1 / (tw.sqrt(tw.maximum(q * fix2, 0.0)) + eps) + decay * x)
    tw.store(m[i : i + BA], u, hint="streaming")
    tw.store(v[i : i + BA], q, hint="streaming")
    tw.store(w[i : i + BA], x, hint="streaming")
    tw.store(W[i : i + BA], x.to(bf16), hint="streaming")
