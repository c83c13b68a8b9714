import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="P[n] = P[n] * 2; Y[n] = P[n]", threads=128)
def bad_in_place_again(P: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    tw.store(P[i : i + 512], tw.load(P[i : i + 512], fill=0.0) * 2.0)
    tw.store(Y[i : i + 512], tw.load(P[i : i + 512], fill=0.0))
