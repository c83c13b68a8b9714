"""Log-sum-exp of rows, and cross-entropy with an integer target a row (no reduction over the rows; a target outside the row picks
nothing). A row that fits the registers of a block or of a cluster is read once; so is a longer one, in chunks with a running maximum."""
import tilewright as tw
from tilewright import bf16, f32, i32

M, N = tw.sizes("M N")
LOG2E = 1.4426950408889634
LN2 = 0.6931471805599453
LOWEST = -3.4028234663852886e38     # a floor for maxima of parts of a row: a part of nothing but -inf must not make inf - inf


@tw.inline
def logsumexp_rows(x):
    top = tw.max(x, axis=1)
    e = tw.exp2(tw.fma(x, LOG2E, (top * -LOG2E)[:, None]), approx=True)
    return top + tw.log2(tw.sum(e, axis=1)) * LN2


@tw.inline
def picked_rows(x, target, m, BM):
    t = tw.load(target[m : m + BM], fill=0)
    return tw.sum(tw.where(tw.coord(x, 1) < N, tw.where(tw.coord(x, 1) == t[:, None], x, 0.0), 0.0), axis=1)


@tw.inline
def part_of_row(X, state, C, BN):
    """Maximum and sum of exponentials of this block's part of the row, chunk by chunk, left in `state` for the cluster."""
    rank, m = tw.grid(C, M)
    rounds = tw.cdiv(N, BN * C)
    top = tw.full(f32, (), LOWEST)
    total = tw.zeros(f32, ())
    for c in tw.range(rounds):
        n = rank * rounds * BN + c * BN
        x = tw.load(X[m, n : n + BN], fill=float("-inf"), hint="streaming").to(f32)
        new_top = tw.maximum(top, tw.max(x, axis=0))
        total = total * tw.exp2((top - new_top) * LOG2E) + tw.sum(tw.exp2((x - new_top) * LOG2E, approx=True), axis=0)
        top = new_top
    tw.store(state[0], top)
    tw.store(state[1], total)
    return rank, m


@tw.inline
def part_of_row_and_target(X, target, state, C, BN):
    """The same, and the sum of the elements at the target: that element, or nothing."""
    rank, m = tw.grid(C, M)
    rounds = tw.cdiv(N, BN * C)
    t = tw.load(target[m])
    top = tw.full(f32, (), LOWEST)
    total = tw.zeros(f32, ())
    picked = tw.zeros(f32, (BN,))
    for c in tw.range(rounds):
        n = rank * rounds * BN + c * BN
        x = tw.load(X[m, n : n + BN], fill=float("-inf"), hint="streaming").to(f32)
        new_top = tw.maximum(top, tw.max(x, axis=0))
        total = total * tw.exp2((top - new_top) * LOG2E) + tw.sum(tw.exp2((x - new_top) * LOG2E, approx=True), axis=0)
        top = new_top
        picked = picked + tw.where(tw.coord(x, 0) < N - n, tw.where(tw.coord(x, 0) + n == t, x, 0.0), 0.0)
    tw.store(state[0], top)
    tw.store(state[1], total)
    tw.store(state[2], tw.sum(picked, axis=0))
    return rank, m


@tw.inline
def logsumexp_of(state, C):
    tw.cluster_sync()
    top = tw.full(f32, (), LOWEST)
    total = tw.zeros(f32, ())
    for r in tw.range(C, unroll=True):
        t = tw.load(state[0], rank=r)
        new_top = tw.maximum(top, t)
        total = total * tw.exp2((top - new_top) * LOG2E) + tw.load(state[1], rank=r) * tw.exp2((t - new_top) * LOG2E)
        top = new_top
    return top + tw.log2(total) * LN2


@tw.kernel(
    target="sm_80", name="logsumexp", computes="S[m] = logsumexp(n, f32(X[m, n]))", threads=tw.min(1024, tw.max(128, BYTES // 64)),
    blocks_per_sm=tw.max(1, 1024 // tw.max(128, BYTES // 64)),
)
def logsumexp_short(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32), BYTES: tw.each(512, 2048, 8192, 16384, 32768)):
    """Rows of up to BYTES bytes of whole vectors in registers, four vectors a thread."""
    BN = BYTES // T.bytes
    BM = tw.max(1, 8192 // BYTES)
    tw.assume(N <= BN)
    tw.assume(N % (16 // T.bytes) == 0)
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], fill=float("-inf"), hint="streaming").to(f32)
    tw.store(S[m], logsumexp_rows(x).to(S.dtype))


@tw.kernel(target="sm_90a", name="logsumexp", computes="S[m] = logsumexp(n, f32(X[m, n]))", threads=512, cluster=(C, 1, 1), blocks_per_sm=2)
def logsumexp_long(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32), C: tw.const(2, 4, 8) = 2, V: tw.const(2, 4) = 4):
    """Rows of any length of whole vectors over the blocks of a cluster."""
    tw.assume(N % (16 // T.bytes) == 0)
    state = tw.shared(f32, (2,))
    rank, m = part_of_row(X, state, C, 8192 * V // T.bytes)
    s = logsumexp_of(state, C)
    if rank == 0:
        tw.store(S[m], s.to(S.dtype))


@tw.kernel(target="sm_80", name="logsumexp", computes="S[m] = logsumexp(n, f32(X[m, n]))", threads=tw.max(128, BN // 16))
def logsumexp_short_any(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32), BN: tw.each(256, 1024, 4096, 8192)):
    """Rows of any length up to BN, one element a lane."""
    BM = tw.max(1, 2048 // BN)
    tw.assume(N <= BN)
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], fill=float("-inf")).to(f32)
    tw.store(S[m], logsumexp_rows(x).to(S.dtype))


@tw.kernel(target="sm_90a", name="logsumexp", computes="S[m] = logsumexp(n, f32(X[m, n]))", threads=512, cluster=(C, 1, 1))
def logsumexp_long_any(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32), C: tw.const(2, 4, 8) = 2):
    """Rows of any length over the blocks of a cluster, one element a lane."""
    state = tw.shared(f32, (2,))
    rank, m = part_of_row(X, state, C, 8192)
    s = logsumexp_of(state, C)
    if rank == 0:
        tw.store(S[m], s.to(S.dtype))


@tw.kernel(
    target="sm_80",
    name="cross_entropy",
    computes="loss[m] = logsumexp(n, f32(X[m, n])) - sum(n, where(n == target[m], f32(X[m, n]), 0))",
    threads=tw.min(1024, tw.max(128, BYTES // 64)),
    blocks_per_sm=tw.max(1, 1024 // tw.max(128, BYTES // 64)),
)
def cross_entropy_short(
    X: tw.Tensor(T, M, N), target: tw.Tensor(i32, M, range=N), loss: tw.Tensor(f32, M), T: tw.each(bf16, f32), BYTES: tw.each(512, 2048, 8192, 16384, 32768)
):
    """Rows of up to BYTES bytes of whole vectors in registers, four vectors a thread."""
    BN = BYTES // T.bytes
    BM = tw.max(1, 8192 // BYTES)
    tw.assume(N <= BN)
    tw.assume(N % (16 // T.bytes) == 0)
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], fill=float("-inf"), hint="streaming").to(f32)
    tw.store(loss[m], logsumexp_rows(x) - picked_rows(x, target, m, BM))


@tw.kernel(
    target="sm_90a",
    name="cross_entropy",
    computes="loss[m] = logsumexp(n, f32(X[m, n])) - sum(n, where(n == target[m], f32(X[m, n]), 0))",
    threads=512,
    cluster=(C, 1, 1),
    blocks_per_sm=2,
)
def cross_entropy_long(
    X: tw.Tensor(T, M, N), target: tw.Tensor(i32, M, range=N), loss: tw.Tensor(f32, M), T: tw.each(bf16, f32), C: tw.const(2, 4, 8) = 2, V: tw.const(1, 2, 4) = 2
):
    """Rows of any length of whole vectors over the blocks of a cluster."""
    tw.assume(N % (16 // T.bytes) == 0)
    state = tw.shared(f32, (3,))
    rank, m = part_of_row_and_target(X, target, state, C, 8192 * V // T.bytes)
    s = logsumexp_of(state, C)
    picked = tw.zeros(f32, ())
    for r in tw.range(C, unroll=True):
        picked = picked + tw.load(state[2], rank=r)
    if rank == 0:
        tw.store(loss[m], s - picked)


@tw.kernel(
    target="sm_80",
    name="cross_entropy",
    computes="loss[m] = logsumexp(n, f32(X[m, n])) - sum(n, where(n == target[m], f32(X[m, n]), 0))",
    threads=tw.max(128, BN // 16),
)
def cross_entropy_short_any(X: tw.Tensor(T, M, N), target: tw.Tensor(i32, M, range=N), loss: tw.Tensor(f32, M), T: tw.each(bf16, f32), BN: tw.each(256, 1024, 4096, 8192)):
    """Rows of any length up to BN, one element a lane."""
    BM = tw.max(1, 2048 // BN)
    tw.assume(N <= BN)
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], fill=float("-inf")).to(f32)
    tw.store(loss[m], logsumexp_rows(x) - picked_rows(x, target, m, BM))


@tw.kernel(
    target="sm_90a",
    name="cross_entropy",
    computes="loss[m] = logsumexp(n, f32(X[m, n])) - sum(n, where(n == target[m], f32(X[m, n]), 0))",
    threads=512,
    cluster=(C, 1, 1),
)
def cross_entropy_long_any(X: tw.Tensor(T, M, N), target: tw.Tensor(i32, M, range=N), loss: tw.Tensor(f32, M), T: tw.each(bf16, f32), C: tw.const(2, 4, 8) = 2):
    """Rows of any length over the blocks of a cluster, one element a lane."""
    state = tw.shared(f32, (3,))
    rank, m = part_of_row_and_target(X, target, state, C, 4096)
    s = logsumexp_of(state, C)
    picked = tw.zeros(f32, ())
    for r in tw.range(C, unroll=True):
        picked = picked + tw.load(state[2], rank=r)
    if rank == 0:
        tw.store(loss[m], s - picked)
