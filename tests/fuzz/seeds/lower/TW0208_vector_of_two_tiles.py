# expect: TW0208 at 13:5
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_90a")
def kernel(X: tw.Tensor(f32, M, N)):
    a = tw.load(X[0:128, 0:64], layout=tw.rows())
    b = tw.load(X[0:128, 0:64], layout=tw.warp_rows())
    v = tw.sum(a, axis=1)
    tw.store(X[0:128, 0:64], b * v[:, None])
