# expect: TW0528 at 8:40
import tilewright as tw
from tilewright import f32, i32

T, S = tw.sizes("T S")


@tw.kernel(target="sm_80", computes="G[idx[t]] += X[t]; idx[t] = 2")
def kernel(X: tw.Tensor(f32, T), idx: tw.Tensor(i32, T), G: tw.Tensor(f32, S, zeroed=True)):
    pass
