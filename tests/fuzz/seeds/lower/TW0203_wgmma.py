# expect: TW0203 at 13:5
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a")
def kernel(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    s = tw.shared(bf16, (64, 64), swizzle=128)
    t = tw.shared(bf16, (128, 64), swizzle=128)
    acc = tw.zeros(f32, (64, 128))
    tw.wgmma(acc, s, t)
