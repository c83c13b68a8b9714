"""Cumulative sum and product along rows in bf16 and fp32: a scan inside a chunk, a carry between chunks."""
import tilewright as tw
from tilewright import bf16, f32

M, N = tw.sizes("M N")


@tw.inline
def short_rows(X, Y, scan, start, BM, BN):
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], fill=start).to(f32)
    tw.store(Y[m : m + BM, 0:BN], scan(x, 1).to(Y.dtype))


@tw.inline
def running_sum(x, axis):
    return tw.cumsum(x, axis=axis)


@tw.inline
def running_product(x, axis):
    return tw.cumprod(x, axis=axis)


@tw.kernel(
    target="sm_80", name="cumsum", computes="Y[m, n] = sum(j in 0:n+1, f32(X[m, j]))", threads=tw.max(128, BN // 16), blocks_per_sm=tw.max(1, 1024 // tw.max(128, BN // 16))
)
def cumsum_short(X: tw.Tensor(T, M, N), Y: tw.Tensor(T, M, N), T: tw.each(bf16, f32), BN: tw.each(256, 512, 1024, 2048, 4096)):
    """Rows of up to BN elements of whole vectors, sixteen neighbouring elements a thread."""
    tw.assume(N <= BN)
    tw.assume(N % (16 // T.bytes) == 0)
    short_rows(X, Y, running_sum, 0.0, tw.max(1, 2048 // BN), BN)


@tw.kernel(target="sm_80", name="cumsum", computes="Y[m, n] = sum(j in 0:n+1, f32(X[m, j]))", threads=256, blocks_per_sm=4)
def cumsum_long(X: tw.Tensor(T, M, N), Y: tw.Tensor(T, M, N), T: tw.each(bf16, f32), BN: tw.const(4096) = 4096):
    """Rows of any length of whole vectors; the carry is the sum of all chunks before."""
    tw.assume(N % (16 // T.bytes) == 0)
    m = tw.grid(M)
    carry = tw.zeros(f32, ())
    for c in tw.range(tw.cdiv(N, BN)):
        x = tw.load(X[m, c * BN : c * BN + BN], fill=0.0).to(f32)
        tw.store(Y[m, c * BN : c * BN + BN], (tw.cumsum(x, axis=0) + carry).to(Y.dtype))
        carry = carry + tw.sum(x, axis=0)


@tw.kernel(target="sm_80", name="cumsum", computes="Y[m, n] = sum(j in 0:n+1, f32(X[m, j]))", threads=256)
def cumsum_any(X: tw.Tensor(T, M, N), Y: tw.Tensor(T, M, N), T: tw.each(bf16, f32), BN: tw.const(2048) = 2048):
    """Rows of any length and alignment."""
    m = tw.grid(M)
    carry = tw.zeros(f32, ())
    for c in tw.range(tw.cdiv(N, BN)):
        x = tw.load(X[m, c * BN : c * BN + BN], fill=0.0).to(f32)
        tw.store(Y[m, c * BN : c * BN + BN], (tw.cumsum(x, axis=0) + carry).to(Y.dtype))
        carry = carry + tw.sum(x, axis=0)


@tw.kernel(
    target="sm_80", name="cumprod", computes="Y[m, n] = prod(j in 0:n+1, f32(X[m, j]))", threads=tw.max(128, BN // 16), blocks_per_sm=tw.max(1, 1024 // tw.max(128, BN // 16))
)
def cumprod_short(X: tw.Tensor(T, M, N), Y: tw.Tensor(T, M, N), T: tw.each(bf16, f32), BN: tw.each(256, 1024, 2048)):
    """Rows of up to BN elements of whole vectors, sixteen neighbouring elements a thread."""
    tw.assume(N <= BN)
    tw.assume(N % (16 // T.bytes) == 0)
    short_rows(X, Y, running_product, 1.0, tw.max(1, 2048 // BN), BN)


@tw.kernel(target="sm_80", name="cumprod", computes="Y[m, n] = prod(j in 0:n+1, f32(X[m, j]))", threads=256)
def cumprod_any(X: tw.Tensor(T, M, N), Y: tw.Tensor(T, M, N), T: tw.each(bf16, f32), BN: tw.const(2048) = 2048):
    """Rows of any length and alignment; the carry is the product of all chunks before."""
    m = tw.grid(M)
    carry = tw.full(f32, (), 1.0)
    for c in tw.range(tw.cdiv(N, BN)):
        x = tw.load(X[m, c * BN : c * BN + BN], fill=1.0).to(f32)
        tw.store(Y[m, c * BN : c * BN + BN], (tw.cumprod(x, axis=0) * carry).to(Y.dtype))
        carry = carry * tw.prod(x, axis=0)
