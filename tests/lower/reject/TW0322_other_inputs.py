# expect: TW0322 at 16:5
import tilewright as tw
from tilewright import bf16, f16, f32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", name="difference", computes="Y[n] = A[n] - B[n]", threads=128)
def even(A: tw.Tensor(f32, N), B: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    tw.assume(N % 4 == 0)
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Y[i : i + 128], tw.load(A[i : i + 128], fill=0.0) - tw.load(B[i : i + 128], fill=0.0))


@tw.kernel(target="sm_80", name="difference", computes="Y[n] = A[n] - B[n]", threads=128)
def odd(B: tw.Tensor(f32, N), A: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Y[i : i + 128], tw.load(A[i : i + 128], fill=0.0) - tw.load(B[i : i + 128], fill=0.0))
