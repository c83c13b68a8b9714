# expect: TW0416 at 11:23
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", threads=32)
def kernel(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    x = tw.load(X[0:16], fill=0.0)
    tw.store(Y[0:16], tw.shuffle(x, up=1))
