"""Sums and maxima over the first axis of a matrix that is tall and narrow: the rows are split over the whole grid, a second launch folds the
parts. axis_sum and axis_max of reductions_sm90.py take one launch, which leaves much of the GPU idle when there are few columns."""
import tilewright as tw
from tilewright import bf16, f32

R, B = tw.sizes("R B")
SPLITS = 264     # two blocks a multiprocessor for every 128 columns
LOWEST = float("-inf")
T = tw.parameters("T")

@tw.kernel(
    target="sm_90a",
    computes="P[s, b] = sum(r in s * ((R + 4223) // 4224 * 16) : minimum((s + 1) * ((R + 4223) // 4224 * 16), R), f32(X[r, b]))",
    threads=256,
    blocks_per_sm=4,
    dependent_launch=True,
)
def partial_sums(X: tw.Tensor(T, R, B), P: tw.Tensor(f32, SPLITS, B), T: tw.each(bf16, f32)):
    """Split s takes the tiles of 16 rows from s * chunk on."""
    tw.assume(B % (16 // T.bytes) == 0)
    bb, s = tw.grid(tw.cdiv(B, 128), SPLITS)
    b = bb * 128
    chunk = tw.cdiv(R, 16 * SPLITS)
    partial = tw.zeros(f32, (16, 128))
    for c in tw.range(s * chunk, tw.min((s + 1) * chunk, tw.cdiv(R, 16)), unroll=16 // T.bytes):
        partial = partial + tw.load(X[c * 16 : c * 16 + 16, b : b + 128], fill=0.0, hint="streaming").to(f32)
    tw.store(P[s, b : b + 128], tw.sum(partial, axis=0))


@tw.kernel(target="sm_90a", computes="S[b] = sum(s, P[s, b])", threads=256, dependent_launch=True)
def folded_sums(P: tw.Tensor(f32, SPLITS, B), S: tw.Tensor(T, B), T: tw.each(bf16, f32)):
    """The sum over the splits, 32 columns a block."""
    b = tw.grid(tw.cdiv(B, 32)) * 32
    x = tw.load(P[0:SPLITS, b : b + 32], fill=0.0)
    tw.store(S[b : b + 32], tw.sum(x, axis=0).to(S.dtype))


@tw.kernel(
    target="sm_90a",
    computes="P[s, b] = max(r in s * ((R + 4223) // 4224 * 16) : minimum((s + 1) * ((R + 4223) // 4224 * 16), R), f32(X[r, b]))",
    threads=256,
    blocks_per_sm=4,
    dependent_launch=True,
)
def partial_maxima(X: tw.Tensor(T, R, B), P: tw.Tensor(f32, SPLITS, B), T: tw.each(bf16, f32)):
    """Split s takes the tiles of 16 rows from s * chunk on."""
    tw.assume(B % (16 // T.bytes) == 0)
    bb, s = tw.grid(tw.cdiv(B, 128), SPLITS)
    b = bb * 128
    chunk = tw.cdiv(R, 16 * SPLITS)
    partial = tw.full(f32, (16, 128), LOWEST)
    for c in tw.range(s * chunk, tw.min((s + 1) * chunk, tw.cdiv(R, 16)), unroll=16 // T.bytes):
        partial = tw.maximum(partial, tw.load(X[c * 16 : c * 16 + 16, b : b + 128], fill=LOWEST, hint="streaming").to(f32))
    tw.store(P[s, b : b + 128], tw.max(partial, axis=0))


@tw.kernel(target="sm_90a", computes="S[b] = max(s, P[s, b])", threads=256, dependent_launch=True)
def folded_maxima(P: tw.Tensor(f32, SPLITS, B), S: tw.Tensor(T, B), T: tw.each(bf16, f32)):
    """The maximum over the splits, 32 columns a block."""
    b = tw.grid(tw.cdiv(B, 32)) * 32
    x = tw.load(P[0:SPLITS, b : b + 32], fill=LOWEST)
    tw.store(S[b : b + 32], tw.max(x, axis=0).to(S.dtype))


@tw.program(computes="S[b] = sum(r, f32(X[r, b]))")
def tall_sum_bf16(X: tw.Tensor(bf16, R, B), S: tw.Tensor(bf16, B)):
    P = tw.buffer(f32, SPLITS, B)
    partial_sums(X, P)
    folded_sums(P, S)


@tw.program(computes="S[b] = sum(r, f32(X[r, b]))")
def tall_sum_f32(X: tw.Tensor(f32, R, B), S: tw.Tensor(f32, B)):
    P = tw.buffer(f32, SPLITS, B)
    partial_sums(X, P)
    folded_sums(P, S)


@tw.program(computes="S[b] = max(r, f32(X[r, b]))")
def tall_max_bf16(X: tw.Tensor(bf16, R, B), S: tw.Tensor(bf16, B)):
    P = tw.buffer(f32, SPLITS, B)
    partial_maxima(X, P)
    folded_maxima(P, S)


@tw.program(computes="S[b] = max(r, f32(X[r, b]))")
def tall_max_f32(X: tw.Tensor(f32, R, B), S: tw.Tensor(f32, B)):
    P = tw.buffer(f32, SPLITS, B)
    partial_maxima(X, P)
    folded_maxima(P, S)
