# Races after a tile of two steps and eight of one (N=4000): the steps of a tile know their number, and only tiles of two or more have a barrier.
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = X[n]", threads=128)
def k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    s = tw.shared(f32, (8, 128))
    c = 0
    for t in tw.range(tw.cdiv(N, 128)):
        x = tw.load(X[t * 128 : t * 128 + 128], fill=0.0, layout=tw.blocked(vector=1))
        for j in tw.range(tw.max(1, tw.min(t - 7, tw.cdiv(N, 128) - 12 - t))):
            if j % 4 == 1:
                tw.sync()
                y = tw.load(s[(c + 7) % 8], layout=tw.blocked(vector=4))
            tw.store(s[c % 8], x)
            c = c + 1
        tw.store(Y[t * 128], x)
