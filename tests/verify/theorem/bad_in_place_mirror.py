import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="P[n] = P[n] + P[0]", threads=128)
def bad_in_place_mirror(P: tw.Tensor(f32, N)):
    tw.assume(N >= 1)
    i = tw.grid(tw.cdiv(N, 512)) * 512
    first = tw.load(P[0])
    tw.store(P[i : i + 512], tw.load(P[i : i + 512], fill=0.0) + first)
