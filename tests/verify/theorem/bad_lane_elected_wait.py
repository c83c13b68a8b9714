import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n]", threads=32)
def copy(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N == 32)
    bm = tw.grid(tw.cdiv(M, 32))
    s = tw.shared(f32, (32, 32))
    full = tw.mbarrier(1)
    with tw.elected():
        full[0].expect(32 * 32 * 4)
        tw.tma_load(s, X[bm * 32, 0], on=full[0])
        full[0].wait(0)
    tw.store(Y[bm * 32, 0], tw.load(s, layout=tw.rows()))
