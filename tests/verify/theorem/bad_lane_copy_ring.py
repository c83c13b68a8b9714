import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n]", threads=32)
def copy(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N % 4 == 0)
    bm = tw.grid(tw.cdiv(M, 32))
    s = tw.shared(f32, (3, 32, 32))
    for c in tw.range(2):
        tw.cp_async(s[c], X[bm * 32 : bm * 32 + 32, c * 32 : c * 32 + 32])
        tw.cp_async_commit()
    for c in tw.range(tw.cdiv(N, 32)):
        tw.cp_async_wait(1)
        tw.cp_async(s[(c + 2) % 3], X[bm * 32 : bm * 32 + 32, (c + 2) * 32 : (c + 2) * 32 + 32])
        tw.cp_async_commit()
        tw.syncwarp()
        tw.store(Y[bm * 32, c * 32], tw.load(s[c % 3], layout=tw.rows()))
