import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[n] = X[n]", threads=128)
def copy(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    tw.assume(N % 4 == 0)
    i = tw.grid(tw.cdiv(N, 512)) * 512
    s = tw.shared(f32, (512,))
    landed = tw.mbarrier(1, arrivals=1)
    tw.cp_async(s, X[i : i + 512])
    tw.cp_async_arrive(landed[0], noinc=False)
    with tw.warps(2):
        with tw.elected():
            landed[0].arrive()
    landed[0].wait(0)
    tw.store(Y[i : i + 512], tw.load(s, layout=tw.blocked(vector=1)))
