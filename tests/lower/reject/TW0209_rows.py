# expect: TW0209 at 10:5
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a")
def kernel(X: tw.Tensor(f32, M, N)):
    x = tw.full(f32, (100, 4), 1.0, layout=tw.rows())
    tw.store(X[0:100, 0:4], x)
