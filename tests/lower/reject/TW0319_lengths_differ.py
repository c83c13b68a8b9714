# expect: TW0319 at 9:63
import tilewright as tw
from tilewright import f32, i32

E, P = tw.sizes("E P")


@tw.kernel(target="sm_80")
def kernel(expert: tw.Tensor(i32, P), back: tw.Tensor(i32, E, inverse_of="expert")):
    pass
