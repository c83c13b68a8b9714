"""Rarer asynchronous forms: additions by TMA, and arrivals that stand for several."""
import tilewright as tw
from tilewright import bf16, f32

P, M, N = tw.sizes("P M N")


@tw.kernel(target="sm_90a", computes="S[m, n] = sum(p, X[p, m, n])", threads=128)
def add_by_tma(X: tw.Tensor(f32, P, M, N), S: tw.Tensor(f32, M, N, zeroed=True)):
    tw.assume(N % 4 == 0)
    bn, bm, p = tw.grid(tw.cdiv(N, 32), tw.cdiv(M, 32), P)
    s = tw.shared(f32, (32, 32))
    tw.store(s, tw.load(X[p, bm * 32 : bm * 32 + 32, bn * 32 : bn * 32 + 32], fill=0.0))
    tw.fence_async()
    tw.sync()
    tw.tma_reduce_add(S[bm * 32, bn * 32], s)
    tw.tma_store_commit()
    tw.tma_store_wait(0)


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n]")
def copy_in_pairs(X: tw.Tensor(bf16, M, N), Y: tw.Tensor(bf16, M, N)):
    """The one consumer arrives for two."""
    tw.assume(N % 8 == 0)
    bm = tw.grid(tw.cdiv(M, 64))
    s = tw.shared(bf16, (2, 64, 64), swizzle=128)
    full = tw.mbarrier(2)
    empty = tw.mbarrier(2, arrivals=2)
    with tw.warpgroups(0, name="producer"):
        for c in tw.range(tw.cdiv(N, 64)):
            if c >= 2:
                empty[c % 2].wait((c // 2 + 1) % 2)
            full[c % 2].expect(64 * 64 * 2)
            tw.tma_load(s[c % 2], X[bm * 64, c * 64], on=full[c % 2])
    with tw.warpgroups(1, name="consumer"):
        done = tw.named_barrier(1, 128)
        for c in tw.range(tw.cdiv(N, 64)):
            full[c % 2].wait(c // 2 % 2)
            x = tw.load(s[c % 2])
            done.sync()
            empty[c % 2].arrive(count=2)
            tw.store(Y[bm * 64, c * 64], x)


@tw.kernel(target="sm_90a", computes="Y[n] = X[n]", threads=64)
def copy_a_line(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    """Boxes of one dimension."""
    tw.assume(N % 4 == 0)
    i = tw.grid(tw.cdiv(N, 128)) * 128
    s = tw.shared(f32, (128,))
    ring = tw.pipeline(1)
    with tw.warps(0):
        slot = ring.acquire()
        tw.tma_load(s, X[i : i + 128], on=ring.full(slot), hint="evict_first")
    with tw.warps(1):
        ring.wait()
        tw.tma_store(Y[i : i + 128], s)
        tw.tma_store_commit()
        tw.tma_store_wait(0)
