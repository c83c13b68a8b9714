import tilewright as tw
from tilewright import bf16, f16, f32, tf32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80", computes="H[m, n] = bf16(X[m, n]); L[m, n] = bf16(X[m, n] - f32(bf16(X[m, n])))", threads=128)
def split(X: tw.Tensor(f32, M, N), H: tw.Tensor(bf16, M, N), L: tw.Tensor(bf16, M, N)):
    c, m = tw.grid(tw.cdiv(N, 512), M)
    x = tw.load(X[m, c * 512 : c * 512 + 512], fill=0.0)
    h = x.to(bf16)
    tw.store(H[m, c * 512 : c * 512 + 512], h)
    tw.store(L[m, c * 512 : c * 512 + 512], (x - h.to(f32)).to(bf16))
