"""Elementwise activations: each thread takes a vector of 16 bytes, small blocks follow one another through memory, as many at a time as fit."""
import tilewright as tw
from tilewright import bf16, f32

N = tw.sizes("N")
M, H = tw.sizes("M H")
SQRT_HALF = 0.7071067811865476
SQRT_2_OVER_PI = 0.7978845608028654
T = tw.parameters("T")

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


@tw.inline
def mapped(f, X, Y, BLOCK):
    i = tw.grid(tw.cdiv(N, BLOCK)) * BLOCK
    x = tw.load(X[i : i + BLOCK], fill=0.0).to(f32)
    tw.store(Y[i : i + BLOCK], f(x).to(Y.dtype))


@tw.kernel(target="sm_80", computes="Y[i] = relu(f32(X[i]))", threads=256, blocks_per_sm=8)
def relu(X: tw.Tensor(T, N), Y: tw.Tensor(T, N), T: tw.each(bf16, f32), V: tw.const(1, 2, 4) = 1):
    """max(x, 0), V vectors a thread."""
    mapped(relu_of, X, Y, 4096 * V // T.bytes)


@tw.kernel(target="sm_80", computes="Y[i] = silu(f32(X[i]))", threads=128, blocks_per_sm=16)
def silu(X: tw.Tensor(T, N), Y: tw.Tensor(T, N), T: tw.each(bf16, f32), V: tw.const(1, 2, 4) = 1):
    """x * sigmoid(x), V vectors a thread."""
    mapped(silu_of, X, Y, 2048 * V // T.bytes)


@tw.kernel(target="sm_80", computes="Y[i] = sigmoid(f32(X[i]))", threads=128, blocks_per_sm=16)
def sigmoid(X: tw.Tensor(T, N), Y: tw.Tensor(T, N), T: tw.each(bf16, f32), V: tw.const(1, 2, 4) = 1):
    """1 / (1 + exp(-x)), V vectors a thread."""
    mapped(sigmoid_of, X, Y, 2048 * V // T.bytes)


@tw.kernel(target="sm_80", computes="Y[i] = gelu(f32(X[i]))", threads=128, blocks_per_sm=16)
def gelu(X: tw.Tensor(T, N), Y: tw.Tensor(T, N), T: tw.each(bf16, f32), V: tw.const(1, 2, 4) = 1):
    """The exact form, with erf; V vectors a thread."""
    mapped(gelu_of, X, Y, 2048 * V // T.bytes)


@tw.kernel(target="sm_80", computes="Y[i] = gelu_tanh(f32(X[i]))", threads=128, blocks_per_sm=16)
def gelu_tanh(X: tw.Tensor(T, N), Y: tw.Tensor(T, N), T: tw.each(bf16, f32), V: tw.const(1, 2, 4) = 1):
    """The form with tanh; V vectors a thread."""
    mapped(gelu_tanh_of, X, Y, 2048 * V // T.bytes)


@tw.kernel(target="sm_80", name="swiglu", computes="Y[m, h in 0:H] = silu(f32(X[m, h])) * f32(X[m, h + H])", threads=256)
def swiglu_aligned(X: tw.Tensor(T, M, 2 * H), Y: tw.Tensor(T, M, H), T: tw.each(bf16, f32), V: tw.const(1, 2, 4) = 1):
    """The gated pair: silu of the first half of a row times its second half."""
    tw.assume(H % (16 // T.bytes) == 0)
    BN = 4096 * V // T.bytes
    bh, m = tw.grid(tw.cdiv(H, BN), M)
    h = bh * BN
    gate = tw.load(X[m, h : h + BN], fill=0.0).to(f32)
    up = tw.load(X[m, h + H : h + H + BN], fill=0.0).to(f32)
    tw.store(Y[m, h : h + BN], (silu_of(gate) * up).to(Y.dtype))


@tw.kernel(target="sm_80", name="swiglu", computes="Y[m, h in 0:H] = silu(f32(X[m, h])) * f32(X[m, h + H])", threads=256)
def swiglu_any(X: tw.Tensor(T, M, 2 * H), Y: tw.Tensor(T, M, H), T: tw.each(bf16, f32), V: tw.const(2, 4, 8) = 4):
    """Halves of any length, one element a lane."""
    BN = 256 * V
    bh, m = tw.grid(tw.cdiv(H, BN), M)
    h = bh * BN
    gate = tw.load(X[m, h : h + BN], fill=0.0, layout=tw.blocked(vector=1)).to(f32)
    up = tw.load(X[m, h + H : h + H + BN], fill=0.0).to(f32)
    tw.store(Y[m, h : h + BN], (silu_of(gate) * up).to(Y.dtype))
