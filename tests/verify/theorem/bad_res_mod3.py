import tilewright as tw
from tilewright import f32, bf16, i32

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[n] = X[n]", threads=128)
def copy(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, M), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    shift = M % 3 * 5
    s = tw.shared(f32, (137,))
    tw.store(s[shift : shift + 128], tw.load(X[i : i + 128], fill=0.0))
    tw.sync()
    tw.store(Y[i : i + 128], tw.load(s[shift : shift + 128]))
