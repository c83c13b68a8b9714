"""What decoding from a cache shares, whether its keys lie in a row or in pages."""
import tilewright as tw
from tilewright import bf16, f32

STEP = 64  # keys at a time


@tw.inline
def attend(queries, keys, values, sQ, sK, sV, first, end, scale, W):
    """The consumer: weighted sums of the values, maxima and sums. The G queries of a head are the first rows of a tile of 64."""
    out = tw.zeros(f32, (64, W))
    x = tw.zeros(f32, (64, STEP))
    top = tw.full(f32, (64,), float("-inf"))
    total = tw.zeros(f32, (64,))
    queries.wait()
    for i in tw.range(tw.cdiv(end - first, STEP)):
        ks = keys.wait()
        tw.wgmma(x, sQ, sK[ks].T, zero=True)
        tw.wgmma_wait(0)
        keys.release()
        seen = tw.coord(x, 1) < end - (first + i * STEP)
        new_top = tw.maximum(top, tw.max(tw.where(seen, x * scale, float("-inf")), axis=1))
        e = tw.where(seen, tw.exp2(x * scale - new_top[:, None]), 0.0)
        alpha = tw.exp2(top - new_top)
        total = total * alpha + tw.sum(e, axis=1)
        out = out * alpha[:, None]
        top = new_top
        vs = values.wait()
        tw.wgmma(out, e.to(bf16), sV[vs])
        tw.wgmma_wait(0)
        values.release()
    queries.release()
    return out, top, total
