"""What is not above 1 is at least 2."""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = minimum(maximum(X[n], 2), 1)", threads=128)
def choice_clip_past_the_number(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=1)
    tw.store(Y[i], tw.where(x > 1.0, 1.0, tw.maximum(x, 2.0)))
