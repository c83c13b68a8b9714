# expect: TW0105 at 11:24
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", threads=128)
def kernel(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    x = tw.load(X[0:128], fill=0.0)
    tw.store(Y[0:128], tw.shuffle(x, up=1, xor=1))
