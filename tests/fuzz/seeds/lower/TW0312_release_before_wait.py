# expect: TW0312 at 12:9
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a")
def kernel(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    ring = tw.pipeline(2)
    with tw.warpgroups(0):
        ring.release()
