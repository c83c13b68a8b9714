"""Log-sum-exp of rows, and cross-entropy with an integer target a row (no reduction over the rows). A row that fits the registers of a block or of a cluster is read once; so is a longer one, in chunks with a running maximum."""
import tilewright as tw
from row_parts import LOG2E, LOWEST, united
from tilewright import bf16, f32, i32

M, N = tw.sizes("M N")
LN2 = 0.6931471805599453
BYTES, T, THREADS, BN, C = tw.parameters("BYTES T THREADS BN C")

@tw.inline
def logsumexp_rows(x):
    top = tw.max(x, axis=1)
    e = tw.exp2(tw.fma(x, LOG2E, (top * -LOG2E)[:, None]), approx=True)
    return top + tw.log2(tw.sum(e, axis=1)) * LN2


@tw.inline
def picked(X, target, m):
    return tw.load(X[m, target[m]]).to(f32)


@tw.inline
def part_of_row(X, state, C, BN):
    """Maximum and sum of exponentials of this block's part of the row, left in `state` for the cluster. The maximum is the block's; every lane
    adds up its own exponentials, relative to it."""
    rank, m = tw.grid(C, M)
    rounds = tw.cdiv(N, BN * C)
    top = tw.full(f32, (), LOWEST)
    total = tw.zeros(f32, (BN,))
    for c in tw.range(rounds):
        n = (rank * rounds + c) * BN
        x = tw.load(X[m, n : n + BN], fill=float("-inf"), hint="streaming").to(f32)
        new_top = tw.maximum(top, tw.max(x, axis=0))
        total = total * tw.exp2((top - new_top) * LOG2E) + tw.exp2((x - new_top) * LOG2E, approx=True)
        top = new_top
    tw.store(state[0], top)
    tw.store(state[1], tw.sum(total, axis=0))
    return rank, m


@tw.inline
def row_by_lanes(X, BN):
    """Log-sum-exp of a row by one block: every lane has a maximum of its own for each of its places, so that nobody meets before the end, at
    the price of a second exponential an element."""
    m = tw.grid(M)
    top = tw.full(f32, (BN,), LOWEST)
    total = tw.zeros(f32, (BN,))
    for c in tw.range(tw.cdiv(N, BN), unroll=4):
        x = tw.load(X[m, c * BN : c * BN + BN], fill=float("-inf"), hint="streaming").to(f32)
        new_top = tw.maximum(top, x)
        total = total * tw.exp2((top - new_top) * LOG2E, approx=True) + tw.exp2((x - new_top) * LOG2E, approx=True)
        top = new_top
    whole = tw.max(top, axis=0)
    return m, whole + tw.log2(tw.sum(total * tw.exp2((top - whole) * LOG2E), axis=0)) * LN2


@tw.inline
def row_by_vectors(X, T, P, D):
    """Log-sum-exp of a row by one block: a maximum for each of P places of a vector (a thread each), so that nobody meets before the end, at the price of one more exponential
    a vector. Whole chunks of P vectors are copied D - 1 ahead, and every thread reads what it copied; the rest of the row waits in registers."""
    W = 16 // T.bytes
    BN = P * W
    rounds = N // BN
    m = tw.grid(M)
    s = tw.shared(T, (D, BN))
    vectors = tw.overlay(s, T, (D, P, W))
    for c in tw.unroll(D - 1):
        tw.cp_async(s[c], X[m, c * BN : c * BN + BN])
        tw.cp_async_commit()
    rest = tw.load(X[m, rounds * BN : rounds * BN + BN], fill=float("-inf"))
    top = tw.full(f32, (P,), LOWEST)
    total = tw.zeros(f32, (P,))
    for c in tw.range(rounds):
        tw.cp_async_wait(D - 2)
        x = tw.load(vectors[c % D], layout=tw.rows()).to(f32)
        ahead = c + D - 1
        tw.cp_async(s[ahead % D], X[m, ahead * BN : ahead * BN + BN])
        tw.cp_async_commit()
        new_top = tw.maximum(top, tw.max(x, axis=1))
        total = total * tw.exp2((top - new_top) * LOG2E) + tw.sum(tw.exp2((x - new_top[:, None]) * LOG2E, approx=True), axis=1)
        top = new_top
    whole = tw.maximum(tw.max(top, axis=0), tw.max(rest.to(f32), axis=0))
    sums = tw.sum(total * tw.exp2((top - whole) * LOG2E), axis=0) + tw.sum(tw.exp2((rest.to(f32) - whole) * LOG2E, approx=True), axis=0)
    return m, whole + tw.log2(sums) * LN2


@tw.inline
def logsumexp_of(state, C):
    top, total = united(state, C, LOWEST)
    return top + tw.log2(total) * LN2


@tw.signature(computes="S[m] = logsumexp(n, f32(X[m, n]))")
def logsumexp(X: tw.Tensor(T, M, N), S: tw.Tensor(T, M), T: tw.each(bf16, f32)):
    """The logarithm of the sum of e to each element of a row."""


@tw.kernel(logsumexp, target="sm_80", threads=tw.min(1024, tw.max(128, BYTES // 64)), blocks_per_sm=tw.max(1, 1024 // tw.max(128, BYTES // 64)))
def logsumexp_short(X, S, T, BYTES: tw.each(512, 2048, 8192, 16384, 32768)):
    """Rows of up to BYTES bytes of whole vectors in registers, four vectors a thread."""
    BN = BYTES // T.bytes
    BM = tw.max(1, 8192 // BYTES)
    tw.assume(N <= BN)
    tw.assume(N % (16 // T.bytes) == 0)
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], fill=float("-inf"), hint="streaming").to(f32)
    tw.store(S[m], logsumexp_rows(x).to(S.dtype))


@tw.kernel(logsumexp, target="sm_90a", threads=512, blocks_per_sm=2)
def logsumexp_lanes(X, S, T: tw.each(f32)):
    """Longer rows of whole vectors of fp32: the second exponential is hidden behind memory."""
    tw.assume(N % (16 // T.bytes) == 0)
    m, s = row_by_lanes(X, 8192 // T.bytes)
    tw.store(S[m], s.to(S.dtype))


@tw.kernel(logsumexp, target="sm_90a", threads=THREADS, blocks_per_sm=8 if THREADS == 256 else 2)
def logsumexp_vectors(X, S, T: tw.each(bf16), THREADS: tw.each(256, 512)):
    """Longer rows of whole vectors of bf16, where exponentials are scarce; few rows get larger blocks."""
    tw.assume(N % (16 // T.bytes) == 0)
    if THREADS == 256:
        tw.assume(M >= 528)
    m, s = row_by_vectors(X, T, THREADS, 4 if THREADS == 256 else 5)
    tw.store(S[m], s.to(S.dtype))


@tw.kernel(logsumexp, target="sm_80", threads=tw.max(128, BN // 16))
def logsumexp_short_any(X, S, T, BN: tw.each(256, 1024, 4096, 8192)):
    """Rows of any length up to BN, one element a lane."""
    BM = tw.max(1, 2048 // BN)
    tw.assume(N <= BN)
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], fill=float("-inf")).to(f32)
    tw.store(S[m], logsumexp_rows(x).to(S.dtype))


@tw.kernel(logsumexp, target="sm_90a", threads=512, cluster=(C, 1, 1))
def logsumexp_long_any(X, S, T, C: tw.const(1, 2, 4, 8) = 1):
    """Rows of any length over the blocks of a cluster, one element a lane."""
    state = tw.shared(f32, (2,))
    rank, m = part_of_row(X, state, C, 8192)
    s = logsumexp_of(state, C)
    if rank == 0:
        tw.store(S[m], s.to(S.dtype))


@tw.signature(computes="loss[m] = logsumexp(n, f32(X[m, n])) - f32(X[m, target[m]])")
def cross_entropy(X: tw.Tensor(T, M, N), target: tw.Tensor(i32, M, range=N), loss: tw.Tensor(f32, M), T: tw.each(bf16, f32)):
    """What the row gives its target, as a loss."""


@tw.kernel(cross_entropy, target="sm_80", threads=tw.min(BYTES // 16, tw.max(128, BYTES // 64)), blocks_per_sm=tw.min(16, 1024 // tw.min(BYTES // 16, tw.max(128, BYTES // 64))))
def cross_entropy_short(X, target, loss, T, BYTES: tw.each(512, 2048, 8192, 16384, 32768)):
    """Rows of up to BYTES bytes of whole vectors in registers, up to four vectors a thread."""
    tw.assume(N <= BYTES // T.bytes)
    tw.assume(N % (16 // T.bytes) == 0)
    m = tw.grid(M)
    x = tw.load(X[m : m + 1, 0 : BYTES // T.bytes], fill=float("-inf"), hint="streaming").to(f32)
    tw.store(loss[m : m + 1], logsumexp_rows(x) - picked(X, target, m))


@tw.kernel(cross_entropy, target="sm_90a", threads=512, blocks_per_sm=2)
def cross_entropy_lanes(X, target, loss, T: tw.each(f32)):
    """Longer rows of whole vectors of fp32: the second exponential is hidden behind memory."""
    tw.assume(N % (16 // T.bytes) == 0)
    m, s = row_by_lanes(X, 8192 // T.bytes)
    tw.store(loss[m], s - picked(X, target, m))


@tw.kernel(cross_entropy, target="sm_90a", threads=THREADS, blocks_per_sm=8 if THREADS == 256 else 2)
def cross_entropy_vectors(X, target, loss, T: tw.each(bf16), THREADS: tw.each(256, 512)):
    """Longer rows of whole vectors of bf16, where exponentials are scarce; few rows get larger blocks."""
    tw.assume(N % (16 // T.bytes) == 0)
    if THREADS == 256:
        tw.assume(M >= 528)
    m, s = row_by_vectors(X, T, THREADS, 4 if THREADS == 256 else 5)
    tw.store(loss[m], s - picked(X, target, m))


@tw.kernel(cross_entropy, target="sm_80", threads=tw.max(128, BN // 16))
def cross_entropy_short_any(X, target, loss, T, BN: tw.each(256, 1024, 4096, 8192)):
    """Rows of any length up to BN, one element a lane."""
    tw.assume(N <= BN)
    m = tw.grid(M)
    x = tw.load(X[m : m + 1, 0:BN], fill=float("-inf")).to(f32)
    tw.store(loss[m : m + 1], logsumexp_rows(x) - picked(X, target, m))


@tw.kernel(cross_entropy, target="sm_90a", threads=512, cluster=(C, 1, 1))
def cross_entropy_long_any(X, target, loss, T, C: tw.const(1, 2, 4, 8) = 1):
    """Rows of any length over the blocks of a cluster, one element a lane."""
    state = tw.shared(f32, (2,))
    rank, m = part_of_row(X, state, C, 8192)
    s = logsumexp_of(state, C)
    if rank == 0:
        tw.store(loss[m], s - picked(X, target, m))
