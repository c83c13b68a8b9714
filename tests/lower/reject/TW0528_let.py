# expect: TW0528 at 8:46
import tilewright as tw
from tilewright import f32, i32

T, S = tw.sizes("T S")


@tw.kernel(target="sm_80", computes="let row[slot[t]] = X[t]; cache[s] = row[s]")
def kernel(X: tw.Tensor(f32, T), slot: tw.Tensor(i32, T, range=S, distinct=True), cache: tw.Tensor(f32, S)):
    pass
