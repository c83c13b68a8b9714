import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="P[n in 0:N - 1] = P[n + 1]", threads=128)
def bad_in_place_shifted(P: tw.Tensor(f32, N)):
    tw.assume(N >= 2)
    i = tw.grid(tw.cdiv(N - 1, 512)) * 512
    tw.store(P[i : i + 512], tw.load(P[i + 1 : i + 513], fill=0.0), limit=(N - 1,))
