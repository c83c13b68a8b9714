# expect: TW0307 at 11:11
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a")
def bad(X: tw.Tensor(f32, M, N)):
    m = tw.grid(M)
    row = tw.team(1, messages=N, depth=2)
