import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="P[n] = P[n] * 2")
def bad_in_place_two_roles(P: tw.Tensor(f32, N)):
    b = tw.grid(tw.cdiv(N, 512))
    with tw.warpgroups(0, 1) as w:
        x = tw.load(P[b * 512 : b * 512 + 512], fill=0.0)
        tw.store(P[b * 512 : b * 512 + 512], x * 2.0)
