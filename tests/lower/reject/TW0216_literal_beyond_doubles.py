# expect: TW0216 at 11:20
import tilewright as tw
from tilewright import i64

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = X[n] + 9007199254740991 + 1", threads=128)
def kernel(X: tw.Tensor(i64, N), Y: tw.Tensor(i64, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Y[i], tw.load(X[i : i + 128], fill=0) + 9007199254740993)
