"""Dropout, whose mask is a function of (seed, offset, element): the backward pass makes it again, and nothing is kept.

Element n is dropped where the uniform number made of word n % 4 of Philox4x32-10 is below p. The key is the 64-bit seed, the counter n // 4 in its lower
half and the 64-bit offset in its upper half: another offset gives an independent mask of any length.
"""
import tilewright as tw
from tilewright import bf16, f16, f32, i32, u32

N = tw.sizes("N")
T = tw.parameters("T")


@tw.inline
def kept(i, BLOCK, x, p, scale, seed0, seed1, offset0, offset1):
    """x, the BLOCK elements from i on, times scale, or 0 where one is dropped. Four neighbours share a draw, which shows where the quotient is one of the tile's own coordinate."""
    bits = tw.philox(seed0, seed1, (tw.arange(BLOCK) // 4 + i // 4).to(u32), 0, offset0, offset1, (tw.arange(BLOCK) % 4).to(u32))
    return tw.where(tw.uniform(bits) < p, 0.0, x * scale)


@tw.kernel(target="sm_80", threads=128, blocks_per_sm=8,
           computes="Y[n] = where(uniform(philox(seed0, seed1, n // 4, 0, offset0, offset1, n % 4)) < p, 0.0, f32(X[n]) * scale)")
def dropout(X: tw.Tensor(T, N), Y: tw.Tensor(T, N), p: tw.scalar(f32), scale: tw.scalar(f32), seed0: tw.scalar(i32), seed1: tw.scalar(i32),
            offset0: tw.scalar(i32), offset1: tw.scalar(i32), T: tw.each(bf16, f16, f32), V: tw.const(1, 2) = 1):
    """Elements are dropped with probability p, the others are multiplied by scale. The backward pass is the same kernel on the gradient."""
    BLOCK = 2048 * V // T.bytes
    i = tw.grid(tw.cdiv(N, BLOCK)) * BLOCK
    x = tw.load(X[i : i + BLOCK], fill=0.0).to(f32)
    tw.store(Y[i : i + BLOCK], kept(i, BLOCK, x, p, scale, seed0, seed1, offset0, offset1).to(Y.dtype))


@tw.kernel(target="sm_80", threads=128, blocks_per_sm=8,
           computes="Y[n] = f32(R[n]) + where(uniform(philox(seed0, seed1, n // 4, 0, offset0, offset1, n % 4)) < p, 0.0, f32(X[n]) * scale)")
def dropout_add(X: tw.Tensor(T, N), R: tw.Tensor(T, N), Y: tw.Tensor(T, N), p: tw.scalar(f32), scale: tw.scalar(f32), seed0: tw.scalar(i32),
                seed1: tw.scalar(i32), offset0: tw.scalar(i32), offset1: tw.scalar(i32), T: tw.each(bf16, f16, f32), V: tw.const(1, 2) = 1):
    """The same, added to a residual."""
    BLOCK = 2048 * V // T.bytes
    i = tw.grid(tw.cdiv(N, BLOCK)) * BLOCK
    x = tw.load(X[i : i + BLOCK], fill=0.0).to(f32)
    r = tw.load(R[i : i + BLOCK], fill=0.0).to(f32)
    tw.store(Y[i : i + BLOCK], (r + kept(i, BLOCK, x, p, scale, seed0, seed1, offset0, offset1)).to(Y.dtype))
