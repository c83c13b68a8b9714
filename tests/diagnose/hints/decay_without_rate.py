# expect: TW1001
# says: foreign is -wd * w[
# hint: -
"""An update in place: what the launch found takes part, and is no garbage."""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="w[n] = w[n] * (1 - lr * wd) - lr * G[n]", threads=128)
def step(G: tw.Tensor(f32, N), w: tw.Tensor(f32, N), lr: tw.scalar(f32), wd: tw.scalar(f32)):
    i = tw.grid(tw.cdiv(N, 512)) * 512
    p = tw.load(w[i : i + 512], fill=0.0)
    tw.store(w[i : i + 512], p * (1.0 - wd) - lr * tw.load(G[i : i + 512], fill=0.0))  # here
