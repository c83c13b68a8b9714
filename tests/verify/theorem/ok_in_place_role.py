import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="P[n] = P[n] * 2")
def ok_in_place_role(P: tw.Tensor(f32, N)):
    b = tw.grid(tw.cdiv(N, 1024))
    with tw.warpgroups(0, 1) as w:
        i = b * 1024 + w * 512
        x = tw.load(P[i : i + 512], fill=0.0)
        tw.store(P[i : i + 512], x * 2.0)
