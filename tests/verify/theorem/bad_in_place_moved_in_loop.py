import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="P[m, n in 512:N] = P[m, n - 512]", threads=128)
def bad_in_place_moved_in_loop(P: tw.Tensor(f32, M, N)):
    tw.assume(N % 512 == 0)
    tw.assume(N >= 1024)
    m = tw.grid(M)
    i = 0
    for c in tw.range(N // 512 - 1):
        x = tw.load(P[m, i : i + 512])
        i = i + 512
        tw.store(P[m, i : i + 512], x)
