# expect: TW0307 at 12:9
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a")
def k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    nb = tw.named_barrier(1, 128)
    with tw.elected():
        tw.cp_async_wait(0)
