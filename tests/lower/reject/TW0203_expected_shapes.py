# expect: TW0203 at 13:22
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = X[n]")
def kernel(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    z = tw.load(X[i : i + 64], fill=0.0)
    tw.expect(x.n == z.n)
    tw.store(Y[i], x)
