# expect: TW0528 at 8:49
import tilewright as tw
from tilewright import f32, i32

T, S = tw.sizes("T S")


@tw.kernel(target="sm_80", computes="cache[slot[t], t] = X[t]")
def kernel(X: tw.Tensor(f32, T), slot: tw.Tensor(i32, T, range=S, distinct=True), cache: tw.Tensor(f32, S, T)):
    pass
