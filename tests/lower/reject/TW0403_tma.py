# expect: TW0403 at 12:5
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80")
def kernel(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    bar = tw.mbarrier(1)
    s = tw.shared(f32, (128,))
    tw.tma_load(s, X[0], on=bar[0])
