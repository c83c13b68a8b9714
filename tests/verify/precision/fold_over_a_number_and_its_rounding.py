# expect: not proved: 
"""A number and its rounding with the other sign lie beside each other in a tile, and are added up."""
import tilewright as tw
from tilewright import bf16, f16, f32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[m, n] = f32(bf16(Z[m, n]))", threads=128)
def fold_over_a_number_and_its_rounding(X: tw.Tensor(f32, M, N), Z: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):
    b, m = tw.grid(tw.cdiv(N, 128), M)
    x = tw.load(X[m, b * 128 : b * 128 + 128], fill=0.0)
    z = tw.load(Z[m, b * 128 : b * 128 + 128], fill=0.0)
    h = x.to(bf16).to(f32)
    two = tw.where(tw.coord(tw.zeros(f32, (128, 2)), 1) == 0, x[:, None], -h[:, None]) + tw.zeros(f32, (128, 2))
    tw.store(Y[m, b * 128 : b * 128 + 128], z + 1000000.0 * tw.sum(two, axis=1))
