# expect: TW0525 at 8:46
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="let a = a + 1; C[n] = A[a]")
def kernel(A: tw.Tensor(f32, N), C: tw.Tensor(f32, N)):
    pass
