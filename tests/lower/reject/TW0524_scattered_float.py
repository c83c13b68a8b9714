# expect: TW0524 at 8:44
import tilewright as tw
from tilewright import f32

T, S = tw.sizes("T S")


@tw.kernel(target="sm_80", computes="cache[slot[t]] = X[t]")
def kernel(X: tw.Tensor(f32, T), slot: tw.Tensor(f32, T), cache: tw.Tensor(f32, S)):
    pass
