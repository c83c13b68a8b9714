"""A quotient by a scalar that may be 0, also where it is taken away from what is divided."""
import tilewright as tw
from tilewright import f32, i32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = f32(K[n] // (step - 4))", threads=128)
def k(K: tw.Tensor(i32, N), Y: tw.Tensor(f32, N), step: tw.scalar(i32, positive=True)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Y[i], (tw.load(K[i : i + 128], fill=0) // (tw.full(i32, (128,), 1) * step - 4)).to(f32))
