import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="P[n] = P[n] * 2", threads=128)
def bad_in_place_loop_twice(P: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    for j in tw.range(2):
        tw.store(P[i : i + 512], tw.load(P[i : i + 512], fill=0.0) * 2.0)
