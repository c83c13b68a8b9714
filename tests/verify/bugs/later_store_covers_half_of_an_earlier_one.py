# expect: TW1001
# hint: -
# rebuilds: two stores into one staging buffer, the second over half of the first
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Z[n] = X[n]", threads=64)
def two_stores(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N), Z: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 64)) * 64
    s = tw.shared(f32, (64,))
    tw.store(s, tw.load(X[i : i + 64], fill=0.0))
    tw.sync()
    tw.store(s[0:32], tw.load(Y[i : i + 32], fill=0.0))
    tw.sync()
    tw.store(Z[i : i + 64], tw.load(s))  # here
