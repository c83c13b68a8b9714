"""Vector addition: the smallest kernel, and the shape of every elementwise one."""
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="C[i] = A[i] + B[i]", threads=256)
def vector_add(A: tw.Tensor(f32, N), B: tw.Tensor(f32, N), C: tw.Tensor(f32, N), BLOCK: tw.const(256, 512, 1024, 2048) = 1024):
    """One block adds BLOCK elements; the last block is masked at the end of the tensors."""
    i = tw.grid(tw.cdiv(N, BLOCK)) * BLOCK
    a = tw.load(A[i : i + BLOCK], fill=0.0)
    b = tw.load(B[i : i + BLOCK], fill=0.0)
    tw.store(C[i : i + BLOCK], a + b)
