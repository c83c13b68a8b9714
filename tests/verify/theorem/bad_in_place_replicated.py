import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="P[n] = P[n] * 2", threads=128)
def bad_in_place_replicated(P: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 32)) * 32
    x = tw.load(P[i : i + 32], fill=0.0)
    tw.store(P[i : i + 32], x * 2.0)
