# expect: TW0528 at 8:48
import tilewright as tw
from tilewright import f32, i32

T, S = tw.sizes("T S")


@tw.kernel(target="sm_80", computes="G[a[t], b[t]] += X[t]")
def kernel(X: tw.Tensor(f32, T), a: tw.Tensor(i32, T), b: tw.Tensor(i32, S), G: tw.Tensor(f32, S, S, zeroed=True)):
    pass
