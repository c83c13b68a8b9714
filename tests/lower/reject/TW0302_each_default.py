# expect: TW0302 at 9:57
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a")
def kernel(X: tw.Tensor(f32, N), BM: tw.each(64, 128) = 64):
    pass
