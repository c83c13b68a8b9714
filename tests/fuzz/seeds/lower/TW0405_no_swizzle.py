# expect: TW0405 at 14:9
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a")
def kernel(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    s = tw.shared(bf16, (64, 64))
    t = tw.shared(bf16, (64, 64), swizzle=128)
    with tw.warpgroups(0):
        acc = tw.zeros(f32, (64, 64))
        tw.wgmma(acc, s, t.T)
