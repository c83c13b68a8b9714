import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_90a", computes="Y[n] = X[n]", threads=128)
def kern(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    """Each iteration stores what the one before left."""
    have = 0
    prev = 0
    kept = tw.zeros(f32, (128,))
    for t in tw.persistent(tw.cdiv(N, 128)):
        if have == 1:
            tw.store(Y[prev * 128 : prev * 128 + 128], kept)
        kept = tw.load(X[t * 128 : t * 128 + 128], fill=0.0)
        prev = t
        have = 1
    if have == 1:
        tw.store(Y[prev * 128 : prev * 128 + 128], kept)
