# expect: TW0410 at 9:5
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", blocks_per_sm=2, threads=384)
def kernel(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    with tw.warpgroups(0, 1, 2, name="first", regs=104):
        pass
    with tw.warpgroups(0, 1, 2, name="second", regs=104):
        pass
