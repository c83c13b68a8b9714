import tilewright as tw
from tilewright import f32, i32

N, E = tw.sizes("N E")


@tw.kernel(target="sm_90a", computes="Y[n] = X[n]")
def k(X: tw.Tensor(f32, N), g: tw.Tensor(i32, N), starts: tw.Tensor(i32, E + 1, offsets_of="g"), Y: tw.Tensor(f32, N)):
    b = tw.grid(E)
    full = tw.mbarrier(2)
    empty = tw.mbarrier(2)
    lo = starts[b]
    hi = starts[b + 1]
    with tw.warpgroups(0):
        for i in tw.range(tw.cdiv(hi - lo, 64)):
            empty[i % 2].wait((i // 2 + 1) % 2)
            full[i % 2].arrive()
    with tw.warpgroups(1):
        for i in tw.range(tw.cdiv(hi - lo, 64)):
            full[i % 2].wait(i // 2 % 2)
            empty[i % 2].arrive()
    with tw.warpgroups(2):
        for i in tw.range(tw.cdiv(hi - lo, 128)):
            row = lo + i * 128
            tw.store(Y[row : row + 128], tw.load(X[row : row + 128], fill=0.0), limit=(hi,))
