"""Sums over the rows that name a place, by atomic additions: the gradient of an embedding, experts' rows added to their tokens, how often each number occurs.

Sums of f32 are in no fixed order, and differ in their last bits from run to run; those of integers do not. kernels/training_sm90.py has the gradient of an embedding in a fixed order, from sorted positions.
"""
import tilewright as tw
from tilewright import bf16, f32, i32

P, V, N = tw.sizes("P V N")
T = tw.parameters("T")


@tw.kernel(target="sm_80", name="embedding_gradient_atomic", computes="DW[token[p], n] += f32(DY[p, n])", threads=128)
def embedding_gradient_atomic(DY: tw.Tensor(T, P, N), token: tw.Tensor(i32, P), DW: tw.Tensor(f32, V, N), T: tw.each(bf16, f32), BM: tw.const(4, 8, 16) = 8, BN: tw.const(128, 256) = 256):
    """Added to what DW holds, so that the gradients of several steps add up; a token outside of the table adds nothing."""
    tw.assume(N % (16 // T.bytes) == 0)
    bn, bp = tw.grid(tw.cdiv(N, BN), tw.cdiv(P, BM))
    row = tw.load(token[bp * BM : bp * BM + BM], fill=-1)
    dy = tw.load(DY[bp * BM : bp * BM + BM, bn * BN : bn * BN + BN], fill=0.0, hint="evict_first").to(f32)
    tw.atomic_add(DW[row, bn * BN : bn * BN + BN], dy)


@tw.kernel(target="sm_80", name="weighted_rows_atomic", computes="Y[token[p], n] += w[p] * f32(X[p, n])", threads=128)
def weighted_rows_atomic(X: tw.Tensor(T, P, N), token: tw.Tensor(i32, P), w: tw.Tensor(f32, P), Y: tw.Tensor(f32, V, N, zeroed=True), T: tw.each(bf16, f32), BM: tw.const(4, 8, 16) = 8, BN: tw.const(128, 256) = 256):
    """What experts made of rows in their order, weighed and added to the rows' tokens."""
    tw.assume(N % (16 // T.bytes) == 0)
    bn, bp = tw.grid(tw.cdiv(N, BN), tw.cdiv(P, BM))
    row = tw.load(token[bp * BM : bp * BM + BM], fill=-1)
    x = tw.load(X[bp * BM : bp * BM + BM, bn * BN : bn * BN + BN], fill=0.0, hint="evict_first").to(f32)
    weight = tw.load(w[bp * BM : bp * BM + BM], fill=0.0)
    tw.atomic_add(Y[row, bn * BN : bn * BN + BN], weight[:, None] * x)


@tw.kernel(target="sm_80", name="bincount", computes="H[X[p]] += 1", threads=256)
def bincount(X: tw.Tensor(i32, P), H: tw.Tensor(i32, V, zeroed=True), BP: tw.const(1024, 2048, 4096) = 2048):
    """How often each number from 0 to V - 1 occurs; others count for nothing."""
    i = tw.grid(tw.cdiv(P, BP)) * BP
    tw.atomic_add(H[tw.load(X[i : i + BP], fill=-1)], tw.full(i32, (BP,), 1))


@tw.kernel(target="sm_80", name="weighted_bincount", computes="H[X[p]] += w[p]", threads=256)
def weighted_bincount(X: tw.Tensor(i32, P), w: tw.Tensor(f32, P), H: tw.Tensor(f32, V, zeroed=True), BP: tw.const(1024, 2048) = 1024):
    """The sum of the weights of each number."""
    i = tw.grid(tw.cdiv(P, BP)) * BP
    tw.atomic_add(H[tw.load(X[i : i + BP], fill=-1)], tw.load(w[i : i + BP], fill=0.0))


@tw.kernel(target="sm_80", name="histogram", computes="H[b] = sum(p, where(i32(floor((X[p] - low) * scale)) == b, 1, 0))", threads=256)
def histogram(X: tw.Tensor(f32, P), H: tw.Tensor(i32, V, zeroed=True), low: tw.scalar(f32), scale: tw.scalar(f32), BP: tw.const(1024, 2048) = 1024):
    """How many numbers fall into each bin of the width 1 / scale, from `low` on; numbers outside of all bins count for nothing."""
    i = tw.grid(tw.cdiv(P, BP)) * BP
    x = tw.load(X[i : i + BP], fill=0.0)
    tw.atomic_add(H[i32(tw.floor((x - low) * scale))], tw.full(i32, (BP,), 1), limit=(P - i,))
