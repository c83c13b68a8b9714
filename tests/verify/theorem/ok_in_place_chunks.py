import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", computes="P[m, n] = P[m, n] * 2", threads=128)
def ok_in_place_chunks(P: tw.Tensor(f32, M, N)):
    m = tw.grid(M)
    for c in tw.range(tw.cdiv(N, 512)):
        x = tw.load(P[m, c * 512 : c * 512 + 512], fill=0.0)
        tw.store(P[m, c * 512 : c * 512 + 512], x * 2.0)
