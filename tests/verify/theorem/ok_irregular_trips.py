# A loop whose trip count goes up and down with the loop around it; its slots go on from tile to tile.
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = X[n]", threads=128)
def k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    s = tw.shared(f32, (3, 128))
    c = 0
    for t in tw.range(tw.cdiv(N, 128)):
        x = tw.load(X[t * 128 : t * 128 + 128], fill=0.0, layout=tw.blocked(vector=1))
        for j in tw.range(tw.max(1, tw.min(t - 7, tw.cdiv(N, 128) - 12 - t))):
            tw.store(s[c % 3], x)
            tw.sync()
            y = tw.load(s[c % 3], layout=tw.blocked(vector=4))
            c = c + 1
        tw.store(Y[t * 128], x)
