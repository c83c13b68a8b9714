# expect: TW1001
# hint: -
# rebuilds: fused bias added in the main loop instead of the epilogue
"""The bias belongs to the epilogue; inside the loop over K it is added once a step."""
import tilewright as tw
from tilewright import f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="Y[m] = sum(n, X[m, n]) + B[m]", threads=128)
def row_sum(X: tw.Tensor(f32, M, N), B: tw.Tensor(f32, M), Y: tw.Tensor(f32, M)):
    m = tw.grid(tw.cdiv(M, 4)) * 4
    total = tw.zeros(f32, (4,))
    bias = tw.load(B[m : m + 4], fill=0.0)
    for c in tw.range(tw.cdiv(N, 128)):
        x = tw.load(X[m : m + 4, c * 128 : c * 128 + 128], fill=0.0)
        total = total + tw.sum(x, axis=1) + bias
    tw.store(Y[m : m + 4], total)  # here
