# expect: TW0319 at 9:18
import tilewright as tw
from tilewright import i32

T = tw.sizes("T")


@tw.kernel(target="sm_80")
def kernel(slot: tw.Tensor(i32, T, distinct=True)):
    pass
