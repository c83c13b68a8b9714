import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="P[n] = P[n] * 2 + X[n]", threads=128)
def bad_in_place_zeroed(X: tw.Tensor(f32, N), P: tw.Tensor(f32, N, zeroed=True)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    x = tw.load(P[i : i + 512], fill=0.0)
    tw.store(P[i : i + 512], x * 2.0 + tw.load(X[i : i + 512], fill=0.0))
