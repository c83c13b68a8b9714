import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="P[n in 512:N] = P[n - 512]", threads=128)
def bad_in_place_moved(P: tw.Tensor(f32, N)):
    tw.assume(N % 512 == 0)
    tw.assume(N >= 1024)
    i = tw.grid(N // 512 - 1) * 512
    x = tw.load(P[i : i + 512])
    i = i + 512
    tw.store(P[i : i + 512], x)
