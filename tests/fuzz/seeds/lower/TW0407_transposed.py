# expect: TW0407 at 14:9
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a")
def kernel(A: tw.Tensor(bf16, M, K)):
    tw.assume(K % 8 == 0)
    bar = tw.mbarrier(1)
    s = tw.shared(bf16, (64, 64), swizzle=128)
    with tw.warpgroups(0):
        tw.tma_load(s.T, A[0, 0], on=bar[0])
