import tilewright as tw
from tilewright import f32, i32

B, P, MP = tw.sizes("B P MP")


@tw.kernel(target="sm_80", computes="Y[b] = sum(t in 0:lengths[b], X[table[b, t // 16], t % 16])", threads=32)
def rows_of_pages(X: tw.Tensor(f32, P, 16), table: tw.Tensor(i32, B, MP, range=P), lengths: tw.Tensor(i32, B, range=(1, MP * 16 + 1)), Y: tw.Tensor(f32, B)):
    """Half a page after the other."""
    b = tw.grid(B)
    end = lengths[b]
    total = tw.full(f32, (1,), 0.0)
    for i in tw.range(tw.cdiv(end, 8)):
        x = tw.load(X[table[b, i // 2] : table[b, i // 2] + 1, i % 2 * 8 : i % 2 * 8 + 8], fill=0.0)
        total = total + tw.sum(tw.where(tw.coord(x, 1) < end - i * 8, x, 0.0), axis=1)
    tw.store(Y[b : b + 1], total)
