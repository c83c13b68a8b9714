"""The divisor is an element of a tensor of which nothing but an upper bound is promised."""
import tilewright as tw
from tilewright import i32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = A[n] % B[n]", threads=128)
def k(A: tw.Tensor(i32, N), B: tw.Tensor(i32, N, range=100), Y: tw.Tensor(i32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Y[i], tw.load(A[i : i + 128], fill=0) % tw.load(B[i : i + 128], fill=1))
