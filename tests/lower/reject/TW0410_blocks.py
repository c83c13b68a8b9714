# expect: TW0410 at 9:5
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", blocks_per_sm=2)
def kernel(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    with tw.warpgroups(0, regs=40):
        pass
    with tw.warpgroups(1, 2, regs=104):
        pass
