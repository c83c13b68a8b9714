# expect: proved
import tilewright as tw
from tilewright import f32, bf16

M, N = tw.sizes("M N")


@tw.kernel(target="sm_90a", name="gelu", computes="""Y[m, n] = bf16(0.5*f32(X[m,n])*(1.0+erf(f32(X[m,n])*0.7071067811865476)))""", threads=128)
def gelu(
    X: tw.Tensor(bf16, M, N),
    Y: tw.Tensor(bf16, M, N),
    BP: tw.const = 1,
    BQ: tw.const = 256,
):
    b_m, b_n = tw.grid(tw.cdiv(M, BP), tw.cdiv(N, BQ))
    first_m = b_m * BP
    first_n = b_n * BQ
    X_tile = tw.load(X[first_m : first_m + BP, first_n : first_n + BQ], fill=0.0).to(f32)
    t = (0.5 * X_tile)
    t2 = (X_tile * 0.7071067811865476)
    t3 = tw.erf(t2)
    t4 = (1.0 + t3)
    t5 = (t * t4)
    tw.store(Y[first_m : first_m + BP, first_n : first_n + BQ], t5.to(bf16))
