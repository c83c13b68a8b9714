# expect: not proved: 
"""The rounded number comes back through shared memory."""
import tilewright as tw
from tilewright import bf16, f16, f32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="Y[n] = f32(bf16(Z[n]))", threads=128)
def rest_by_way_of_shared_memory(X: tw.Tensor(f32, N), Z: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    s = tw.shared(bf16, (128,))
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    z = tw.load(Z[i : i + 128], fill=0.0)
    h = x.to(bf16).to(f32)
    tw.store(s, x.to(bf16))
    tw.sync()
    tw.store(Y[i : i + 128], z + 1000000.0 * (x - tw.load(s).to(f32)))
