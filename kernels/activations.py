"""Elementwise activations: each thread takes a vector of 16 bytes, small blocks follow one another through memory, as many at a time as fit."""
import tilewright as tw
from tilewright import bf16, f32

N = tw.sizes("N")
M, H = tw.sizes("M H")
SQRT_HALF = 0.7071067811865476
SQRT_2_OVER_PI = 0.7978845608028654
T, F = tw.parameters("T F")

@tw.inline
def relu_of(x):
    return tw.maximum(x, 0.0)


@tw.inline
def silu_of(x):
    return x * tw.rcp(1.0 + tw.exp2(x * -1.4426950408889634, approx=True), approx=True)


@tw.inline
def sigmoid_of(x):
    return tw.rcp(1.0 + tw.exp2(x * -1.4426950408889634, approx=True), approx=True)


@tw.inline
def gelu_of(x):
    return 0.5 * x * (1.0 + tw.erf(x * SQRT_HALF, approx=True))


@tw.inline
def gelu_tanh_of(x):
    return 0.5 * x * (1.0 + tw.tanh(SQRT_2_OVER_PI * (x + 0.044715 * x * x * x)))


RELU = tw.record(name="relu", of=relu_of, threads=256)
SILU = tw.record(name="silu", of=silu_of, threads=128)
SIGMOID = tw.record(name="sigmoid", of=sigmoid_of, threads=128)
GELU = tw.record(name="gelu", of=gelu_of, threads=128)
GELU_TANH = tw.record(name="gelu_tanh", of=gelu_tanh_of, threads=128)


@tw.kernel(target="sm_80", name=F.name, computes="Y[i] = F(f32(X[i]))", threads=F.threads, blocks_per_sm=2048 // F.threads)
def mapped(X: tw.Tensor(T, N), Y: tw.Tensor(T, N), F: tw.each(RELU, SILU, SIGMOID, GELU, GELU_TANH), T: tw.each(bf16, f32), V: tw.const(1, 2, 4) = 1):
    """A function of each element, V vectors a thread."""
    BLOCK = 16 * F.threads * V // T.bytes
    i = tw.grid(tw.cdiv(N, BLOCK)) * BLOCK
    x = tw.load(X[i : i + BLOCK], fill=0.0).to(f32)
    tw.store(Y[i : i + BLOCK], F.of(x).to(Y.dtype))


@tw.signature(target="sm_80", computes="Y[m, h in 0:H] = silu(f32(X[m, h])) * f32(X[m, h + H])", threads=256)
def swiglu(X: tw.Tensor(T, M, 2 * H), Y: tw.Tensor(T, M, H), T: tw.each(bf16, f32)):
    """The gated pair: silu of the first half of a row times its second half."""


@tw.kernel(swiglu)
def swiglu_aligned(X, Y, T, V: tw.const(1, 2, 4) = 1):
    """Halves of whole vectors."""
    tw.assume(H % (16 // T.bytes) == 0)
    BN = 4096 * V // T.bytes
    bh, m = tw.grid(tw.cdiv(H, BN), M)
    h = bh * BN
    gate = tw.load(X[m, h : h + BN], fill=0.0).to(f32)
    up = tw.load(X[m, h + H : h + H + BN], fill=0.0).to(f32)
    tw.store(Y[m, h : h + BN], (silu_of(gate) * up).to(Y.dtype))


@tw.kernel(swiglu)
def swiglu_any(X, Y, T, V: tw.const(2, 4, 8) = 4):
    """Halves of any length, one element a lane."""
    BN = 256 * V
    bh, m = tw.grid(tw.cdiv(H, BN), M)
    h = bh * BN
    gate = tw.load(X[m, h : h + BN], fill=0.0, layout=tw.blocked(vector=1)).to(f32)
    up = tw.load(X[m, h + H : h + H + BN], fill=0.0).to(f32)
    tw.store(Y[m, h : h + BN], (silu_of(gate) * up).to(Y.dtype))
