"""What moves data between threads: a reduction and a scan across warps, a relayout, a gather, cp.async into mma, a shuffle."""
import tilewright as tw
from tilewright import bf16, f32, i32

M, N = tw.sizes("M N")


@tw.kernel(target="sm_80")
def exchanges(X: tw.Tensor(f32, M, N), A: tw.Tensor(bf16, M, 64), rows: tw.Tensor(i32, M, range=M), Y: tw.Tensor(f32, M, N), C: tw.Tensor(bf16, 64, 64)):
    m = tw.grid(M)
    x = tw.load(X[m, 0:1024], fill=0.0)
    top = tw.max(x, axis=0)
    y = tw.cumsum(tw.exp(x - top), axis=0)
    tw.store(Y[m, 0:1024], tw.relayout(y, tw.blocked(vector=1)))
    picked = tw.load(rows[0:64], fill=0)
    s = tw.shared(bf16, (64, 64), swizzle=128)
    tw.cp_async(s, A[picked, 0:64])
    tw.cp_async_commit()
    tw.cp_async_wait(0)
    tw.sync()
    acc = tw.zeros(f32, (64, 64), layout=tw.mma_c(warps=(2, 2)))
    tw.mma(acc, tw.load(s, layout=tw.mma_a()), tw.load(s, layout=tw.mma_b()))
    tw.store(C[0:64, 0:64], (acc + tw.shuffle(acc, xor=1)).to(bf16))
