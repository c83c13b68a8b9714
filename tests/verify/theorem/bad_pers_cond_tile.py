import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n]")
def copy(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N == 64)
    s = tw.shared(f32, (64, 64))
    full = tw.mbarrier(1)
    empty = tw.mbarrier(1)
    with tw.warpgroups(0, name="producer"):
        n = 0
        for t in tw.persistent(tw.cdiv(M, 64)):
            empty[0].wait((n + 1) % 2)
            full[0].expect(64 * 64 * 4)
            tw.tma_load(s, X[t * 64, 0], on=full[0])
            if t % 3 != 5:
                n += 1
    with tw.warpgroups(1, name="consumer"):
        readers = tw.named_barrier(1, 128)
        n = 0
        for t in tw.persistent(tw.cdiv(M, 64)):
            full[0].wait(n % 2)
            x = tw.load(s)
            readers.sync()
            with tw.elected():
                empty[0].arrive()
            tw.store(Y[t * 64, 0], x)
            if t % 3 != 5:
                n += 1
