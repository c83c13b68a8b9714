"""Cumulative sum and product along rows in bf16 and fp32: a scan inside a chunk, a carry between chunks. A thread has one vector of 16 bytes
of a chunk, so that the scan's order is memory's."""
import tilewright as tw
from row_parts import plus
from tilewright import bf16, f32

M, N = tw.sizes("M N")
BYTES, T, S, F = tw.parameters("BYTES T S F")

@tw.inline
def times(x, y):
    return x * y


SUM = tw.record(name="sum", join=plus, scan=tw.cumsum, fold=tw.sum, start=0.0)
PROD = tw.record(name="prod", join=times, scan=tw.cumprod, fold=tw.prod, start=1.0)


@tw.inline
def ring(X, Y, F, T, S, BN):
    """A row in chunks: every thread copies its vectors S - 1 chunks ahead and reads what it copied itself, so that nobody waits for anybody but in the scan."""
    m = tw.grid(M)
    s = tw.shared(T, (S, BN))
    for c in tw.unroll(S - 1):
        tw.cp_async(s[c], X[m, c * BN : c * BN + BN])
        tw.cp_async_commit()
    carry = tw.full(f32, (), F.start)
    for c in tw.range(tw.cdiv(N, BN)):
        tw.cp_async_wait(S - 2)
        x = tw.load(s[c % S]).to(f32)
        ahead = c + S - 1
        tw.cp_async(s[ahead % S], X[m, ahead * BN : ahead * BN + BN])
        tw.cp_async_commit()
        tw.store(Y[m, c * BN : c * BN + BN], F.join(F.scan(x, axis=0), carry).to(Y.dtype))
        carry = F.join(carry, F.fold(x, axis=0))


@tw.signature(name="cum" + F.name, computes="Y[m, n] = F(j in 0:n+1, f32(X[m, j]))", target="sm_80")
def running(X: tw.Tensor(T, M, N), Y: tw.Tensor(T, M, N), T: tw.each(bf16, f32)):
    """What is before an element in its row, and itself, folded."""


@tw.kernel(running, threads=tw.max(128, BYTES // 16), blocks_per_sm=2048 // tw.max(128, BYTES // 16))
def cumsum_short(X, Y, T, BYTES: tw.each(512, 1024, 2048, 4096), F: tw.each(SUM)):
    """Rows of up to BYTES bytes of whole vectors, one vector a thread."""
    BM, BN = tw.max(1, 2048 // BYTES), BYTES // T.bytes
    tw.assume(N <= BN)
    tw.assume(N % (16 // T.bytes) == 0)
    m = tw.grid(tw.cdiv(M, BM)) * BM
    x = tw.load(X[m : m + BM, 0:BN], fill=F.start).to(f32)
    tw.store(Y[m : m + BM, 0:BN], F.scan(x, axis=1).to(Y.dtype))


@tw.kernel(running, threads=256, blocks_per_sm=6 if S == 4 else 4)
def cumsum_ring(X, Y, T, S: tw.each(4, 5), F: tw.each(SUM)):
    """Longer rows of whole vectors; the fewer rows there are, the further ahead each is copied."""
    tw.assume(N % (16 // T.bytes) == 0)
    if S == 4:
        tw.assume(M >= 528)
    ring(X, Y, F, T, S, 4096 // T.bytes)


@tw.kernel(running, threads=64 if T == bf16 else 256, blocks_per_sm=32 if T == bf16 else 8)
def cumsum_shifted(X, Y, T, F: tw.each(SUM), S: tw.const(3, 4, 6) = 3):
    """Rows of any length and pitch, each from the multiple of 16 bytes at or before its start: what lies before the row adds nothing."""
    BN = 512 if T == bf16 else 1024
    V = 16 // T.bytes
    m = tw.grid(M)
    n = -(m % V * (N % V) % V)
    s = tw.shared(T, (S, BN))
    for c in tw.unroll(S - 1):
        tw.cp_async(s[c], X[m, n + c * BN : n + c * BN + BN])
        tw.cp_async_commit()
    carry = tw.zeros(f32, ())
    for c in tw.range(tw.cdiv(N + V - 1, BN)):
        tw.cp_async_wait(S - 2)
        x = tw.load(s[c % S]).to(f32)
        ahead = c + S - 1
        tw.cp_async(s[ahead % S], X[m, n + ahead * BN : n + ahead * BN + BN])
        tw.cp_async_commit()
        tw.store(Y[m, n + c * BN : n + c * BN + BN], (tw.cumsum(x, axis=0) + carry).to(Y.dtype))
        carry = carry + tw.sum(x, axis=0)


@tw.kernel(running, threads=256, blocks_per_sm=8)
def cumprod_ring(X, Y, T, F: tw.each(PROD), S: tw.const(3, 4, 5) = 4):
    """Rows of whole vectors; the carry is the product of all chunks before."""
    tw.assume(N % (16 // T.bytes) == 0)
    ring(X, Y, F, T, S, 4096 // T.bytes)


@tw.kernel(running, threads=256, blocks_per_sm=6)
def cumprod_any(X, Y, T, F: tw.each(PROD)):
    """Rows of any alignment: one element a lane on both sides of memory, four neighbours a thread in the scan."""
    BN = 1024
    m = tw.grid(M)
    carry = tw.full(f32, (), F.start)
    for c in tw.range(tw.cdiv(N, BN)):
        x = tw.relayout(tw.load(X[m, c * BN : c * BN + BN], fill=F.start, layout=tw.blocked(vector=1)), tw.blocked(vector=4)).to(f32)
        y = F.join(F.scan(x, axis=0), carry).to(Y.dtype)
        tw.store(Y[m, c * BN : c * BN + BN], tw.relayout(y, tw.blocked(vector=1)))
        carry = F.join(carry, F.fold(x, axis=0))
