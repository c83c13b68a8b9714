"""A mask in the index of a store leaves every second row out, beside a promise."""
import tilewright as tw
from tilewright import f32, i32

T, N = tw.sizes("T N")


@tw.kernel(target="sm_80", computes="Y[t, n] = X[t, n]", threads=128)
def gathered_mask_half(X: tw.Tensor(f32, T, N), idx: tw.Tensor(i32, T, range=T), Y: tw.Tensor(f32, T, N)):
    bn, bt = tw.grid(tw.cdiv(N, 128), tw.cdiv(T, 16))
    k = tw.arange(16)
    place = tw.where(k % 2 == 0, k + bt * 16, -1)
    x = tw.load(X[bt * 16 : bt * 16 + 16, bn * 128 : bn * 128 + 128], fill=0.0)
    tw.store(Y[place, bn * 128 : bn * 128 + 128], x)
