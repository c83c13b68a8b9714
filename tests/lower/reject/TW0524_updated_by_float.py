# expect: TW0524 at 8:40
import tilewright as tw
from tilewright import f32

T, S = tw.sizes("T S")


@tw.kernel(target="sm_80", computes="G[idx[t]] += X[t]")
def kernel(X: tw.Tensor(f32, T), idx: tw.Tensor(f32, T), G: tw.Tensor(f32, S, zeroed=True)):
    pass
