"""What the kernels of grouped products share: the order of their tiles, and rows that are gathered on their way into a ring."""
import tilewright as tw


@tw.inline
def place(t, columns, TOGETHER):
    """Work item t: tile of rows, tile of weights. The TOGETHER tiles of a batch take turns on each tile of weights, so that a wave of blocks
    reads few rows and few weights, each many times, from L2."""
    batch = t // (TOGETHER * columns)
    turn = t % TOGETHER
    return batch * TOGETHER + turn, t // TOGETHER % columns


@tw.inline
def hand_on(ring, slot, kt, steps, STAGES, LAG):
    """Closes the copies of this step; a slot is full LAG steps after its copies were issued, at the end of a tile all are waited for."""
    tw.cp_async_commit()
    if kt >= LAG:
        tw.cp_async_wait(LAG)
        ring.commit((slot + STAGES - LAG) % STAGES)
    if kt == steps - 1:
        for i in tw.unroll(LAG):
            if kt >= LAG - 1 - i:
                tw.cp_async_wait(LAG - 1 - i)
                ring.commit((slot + STAGES - (LAG - 1 - i)) % STAGES)
