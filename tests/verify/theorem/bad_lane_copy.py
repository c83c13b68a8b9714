import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n]", threads=32)
def copy(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N % 4 == 0)
    bm = tw.grid(tw.cdiv(M, 32))
    s = tw.shared(f32, (32, 32))
    for c in tw.range(tw.cdiv(N, 32)):
        tw.cp_async(s, X[bm * 32 : bm * 32 + 32, c * 32 : c * 32 + 32])
        tw.cp_async_commit()
        tw.cp_async_wait(0)
        tw.syncwarp()
        tw.store(Y[bm * 32, c * 32], tw.load(s, layout=tw.rows()))
