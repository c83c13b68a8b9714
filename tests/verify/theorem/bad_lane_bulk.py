import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a", computes="Y[m, n] = X[m, n]", threads=32)
def copy(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    tw.assume(N % 32 == 0)
    bm = tw.grid(tw.cdiv(M, 32))
    s = tw.shared(f32, (32, 32))
    for c in tw.range(tw.cdiv(N, 32)):
        tw.store(s, tw.load(X[bm * 32 : bm * 32 + 32, c * 32 : c * 32 + 32], fill=0.0))
        tw.fence_async()
        tw.syncwarp()
        with tw.elected():
            tw.tma_store(Y[bm * 32, c * 32], s)
            tw.tma_store_commit()
            tw.tma_store_wait(0, read=True)
    with tw.elected():
        tw.tma_store_wait(0)
