# expect: TW0526 at 8:448
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


@tw.kernel(target="sm_80", computes="let a[m, n] = A[m, n] + A[m, n]; let b[m, n] = a[m, n] * a[m, n]; let c[m, n] = b[m, n] * b[m, n]; let d[m, n] = c[m, n] * c[m, n]; let e[m, n] = d[m, n] * d[m, n]; let f[m, n] = e[m, n] * e[m, n]; let g[m, n] = f[m, n] * f[m, n]; let h[m, n] = g[m, n] * g[m, n]; let i[m, n] = h[m, n] * h[m, n]; let j[m, n] = i[m, n] * i[m, n]; let k[m, n] = j[m, n] * j[m, n]; let l[m, n] = k[m, n] * k[m, n]; let m[m, n] = l[m, n] * l[m, n]; let n[m, n] = m[m, n] * m[m, n]; let o[m, n] = n[m, n] * n[m, n]; let p[m, n] = o[m, n] * o[m, n]; let q[m, n] = p[m, n] * p[m, n]; let r[m, n] = q[m, n] * q[m, n]; let s[m, n] = r[m, n] * r[m, n]; let t[m, n] = s[m, n] * s[m, n]; let u[m, n] = t[m, n] * t[m, n]; C[m, n] = u[m, n]")
def kernel(A: tw.Tensor(f32, M, N), B: tw.Tensor(f32, N, M), C: tw.Tensor(f32, M, N)):
    pass
