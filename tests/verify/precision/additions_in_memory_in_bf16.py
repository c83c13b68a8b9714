# expect: not proved: 
"""Every addition rounds."""
import tilewright as tw
from tilewright import bf16, e4m3, f16, f32, i32, tf32
M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="S[n] = bf16(sum(m, f32(X[m, n])))", threads=128)
def additions_in_memory_in_bf16(X: tw.Tensor(bf16, M, N), S: tw.Tensor(bf16, N, zeroed=True)):
    bn, m = tw.grid(tw.cdiv(N, 256), M)
    tw.atomic_add(S[bn * 256 : bn * 256 + 256], tw.load(X[m, bn * 256 : bn * 256 + 256], fill=0.0))
