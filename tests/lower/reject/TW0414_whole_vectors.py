# expect: TW0414 at 12:5
import tilewright as tw
from tilewright import bf16

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80")
def kernel(A: tw.Tensor(bf16, M, N)):
    tw.assume(N % 8 == 3)
    s = tw.shared(bf16, (64, 64), pad=8 + 4)
    tw.cp_async(s, A[0, 0], whole_vectors=True)
