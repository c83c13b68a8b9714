"""What memory-bound kernels are held against: bench/targets/stream.cu moving as many bytes, nothing computed.

    stream = copying(268435456)     # half of them read, half written
    stream = reading(268435456)     # all of them read
    stream()
"""
import functools
import os

import torch

import harness
from tilewright._library import library_path

HERE = os.path.dirname(os.path.abspath(__file__))
THREADS = 512


@functools.lru_cache(maxsize=None)
def compiled(mode, unroll, load_form):
    os.environ.setdefault("TILEWRIGHT_LIBRARY", str(library_path()))
    return harness.compile(os.path.join(HERE, "targets", "stream.cu"), entry="stream",
                           defines=dict(MODE=mode, THREADS=THREADS, UNROLL=unroll, LOAD_FORM=load_form, STORE_FORM=0))


def launch(kernel, read, written, unroll):
    tile = THREADS * unroll * 16
    read = -(-read // tile) * tile
    source = torch.empty(read, dtype=torch.uint8, device="cuda").random_()
    into = torch.empty(max(read if written else 0, 16 * (read // tile)), dtype=torch.uint8, device="cuda")   # a read leaves a word a block
    return kernel.prepare(grid=(read // tile, 1, 1), block=(THREADS, 1, 1), args=[source, into, harness.i64(read)], smem=0)


def copying(moved):
    """The fastest copy of docs/performance/memory.md: one vector a thread."""
    return launch(compiled(0, 1, 0), moved // 2, True, 1)


def reading(moved):
    """The fastest read there: four vectors a thread, not kept in L1."""
    return launch(compiled(1, 4, 1), moved, False, 4)
