# expect: not proved: 
"""One block adds a large number in memory, and the other takes its rounding away."""
import tilewright as tw
from tilewright import bf16, f16, f32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[n] = f32(bf16(Z[n]))", threads=128)
def rest_left_by_two_blocks(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N, zeroed=True)):
    b, half = tw.grid(tw.cdiv(N, 128), 2)
    i = b * 128
    x = tw.load(X[i : i + 128], fill=0.0) * 1000000.0
    z = tw.load(Z[i : i + 128], fill=0.0)
    tw.atomic_add(Y[i : i + 128], tw.where(tw.arange(128) * 0 + half == 0, z + x, -(x.to(bf16).to(f32))))
