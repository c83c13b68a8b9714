"""The variants of the memory-bound targets: which texts there are, how each is launched, which is chosen for a row length."""
import dataclasses
import os

HERE = os.path.dirname(os.path.abspath(__file__))

@dataclasses.dataclass
class Variant:
    """One compiled text and how it is launched. `waves` 0: one block per team of rows; k > 0: k times the resident blocks."""
    file: str
    defines: dict
    waves: float = 0

    @property
    def entry(self):
        return self.file[:-3]

    @property
    def ring(self):
        return self.file.endswith("_ring.cu")

    @property
    def threads(self):
        d = self.defines
        return d["WARPS"] * d["GROUPS"] * 32 if self.ring else d["THREADS"]

    @property
    def rows_per_block(self):
        d = self.defines
        return d["GROUPS"] if self.ring else d["THREADS"] // d["LANES"]

    @property
    def cluster(self):
        return self.defines.get("CLUSTER", 1)

    @property
    def shared_bytes(self):
        d = self.defines
        if self.file == "stream.cu":
            return d["STAGES"] * d["PIECE"] if d["MODE"] == 2 else 0
        if not self.ring:
            return 0  # static only
        segments = d["WARPS"] * d["GROUPS"] * d["STAGES"] + (2 * d["WARPS"] if d.get("WEIGHTS") == 2 else 0)
        return segments * d["VECS"] * 512

    @property
    def name(self):
        shown = {k: v for k, v in self.defines.items() if k not in ("ELEM_BYTES",)}
        return self.entry + ":" + ",".join(f"{k}={v}" for k, v in shown.items()) + f",waves={self.waves:g}"

    def resident_blocks(self, kernel, sms):
        """Blocks of this kernel that fit the GPU at once (H100/H200: 64 K registers, 2048 threads, 227 KB a multiprocessor)."""
        warps = (self.threads + 31) // 32
        regs = max(1, (kernel.registers + 7) // 8 * 8) * 32 * warps
        shared = self.shared_bytes + kernel.shared_static + 1024
        per_sm = min(65536 // regs, 2048 // (warps * 32), 32, 233472 // shared)
        return max(1, per_sm) * sms

    def grid(self, kernel, rows, sms):
        teams = (rows + self.rows_per_block - 1) // self.rows_per_block
        if self.waves:
            teams = min(teams, max(1, int(self.resident_blocks(kernel, sms) * self.waves) // self.cluster))
        return teams * self.cluster


def rows_variant(op, elem, lanes, vecs, threads=None, kind=0, waves=0, **more):
    return Variant(f"{op}_rows.cu", dict(ELEM_BYTES=elem, THREADS=threads or max(lanes, 128), LANES=lanes, VECS=vecs,
                                         ROW_KIND=kind, **more), waves)


def ring_variant(op, elem, warps, vecs, stages, cluster=1, groups=1, kind=0, waves=1, **more):
    return Variant(f"{op}_ring.cu", dict(ELEM_BYTES=elem, WARPS=warps, GROUPS=groups, VECS=vecs, STAGES=stages,
                                         CLUSTER=cluster, ROW_KIND=kind, **more), waves)


def min_blocks(op, elem, vecs, threads, kind=0, kept=0):
    """How many blocks a multiprocessor must hold, so that the compiler uses few registers but not so few that it spills.

    A thread holds vecs * 16 / elem fp32 values, `kept` more registers, and an overhead seen in the compiler's reports.
    """
    values = vecs * 16 // elem
    need = values + kept + {"layernorm": 42 if values > 16 else 36, "cumsum": 28}.get(op, 22)
    need += {0: 0, 1: 6, 2: 26 if op == "layernorm" else 14}[kind]
    warps = -(-threads // 32)
    # A quarter of a multiprocessor has 16384 registers, given out in eights a thread.
    fits = [blocks for blocks in range(2048 // threads, 0, -1) if 16384 // (32 * -(-blocks * warps // 4)) // 8 * 8 >= need]
    return min(32, fits[0]) if fits else 0


def stream_variants():
    """Copies. Bulk copies and persistent grids are here to be seen losing to one-shot blocks in address order."""
    out = []
    for threads, unroll in [(256, 2), (512, 2), (1024, 2), (512, 1), (1024, 1), (512, 4), (1024, 4), (256, 4)]:
        for load, store in [(0, 0), (0, 1), (0, 2), (1, 0), (3, 0)]:
            out.append(Variant("stream.cu", dict(MODE=0, THREADS=threads, UNROLL=unroll, LOAD_FORM=load, STORE_FORM=store)))
    for waves in (1, 2, 4):
        out.append(Variant("stream.cu", dict(MODE=0, THREADS=1024, UNROLL=2, LOAD_FORM=0, STORE_FORM=0), waves))
    for piece, stages, waves in [(8192, 4, 1), (16384, 4, 1), (4096, 4, 1)]:
        out.append(Variant("stream.cu", dict(MODE=2, THREADS=32, PIECE=piece, STAGES=stages), waves))
    return out


def read_variants():
    return [Variant("stream.cu", dict(MODE=1, THREADS=t, UNROLL=u, LOAD_FORM=f))
            for t, u in [(512, 4), (512, 8), (256, 8), (256, 16)] for f in (0, 1)]


def sweep_variants(op, elem, n):
    """Candidates for rows of n elements that fill the capacity exactly."""
    if op == "transpose":
        return [Variant("transpose.cu", dict(ELEM_BYTES=elem, TILE_R=tile, THREADS=threads, RASTER=raster, LOAD_FORM=load, STORE_FORM=store))
                for tile, threads in [(32, 128), (64, 128), (64, 256), (128, 256), (128, 512), (256, 512)] for raster in (0, 1)
                for load, store in ((0, 0), (1, 0)) if (tile, threads) != (32, 128) or elem == 4]
    if op == "colsum":
        return [Variant("colsum.cu", dict(ELEM_BYTES=elem, THREADS=threads, LANES=lanes, UNROLL=unroll, LOAD_FORM=load), waves)
                for threads, lanes in [(256, 32), (256, 64), (512, 64), (512, 128), (256, 256)] for unroll in (4, 8)
                for load in (0, 1) for waves in (1, 2)]
    if n * elem % 16 or (n * elem // 16) & (n * elem // 16 - 1):
        return ragged_variants(op, elem, n)
    slots = n * elem // 16
    out = []
    ln = op == "layernorm"
    forms = [dict(LOAD_FORM=0, STORE_FORM=0), dict(LOAD_FORM=0, STORE_FORM=1), dict(LOAD_FORM=1, STORE_FORM=1)]

    for lanes in (32, 64, 128, 256, 512, 1024):
        vecs = slots // lanes
        if vecs * lanes != slots or not 1 <= vecs <= 8:
            continue
        for threads in {max(lanes, 64), max(lanes, 128), max(lanes, 256)}:
            blocks = min_blocks(op, elem, vecs, threads)
            if not blocks:
                continue
            for form in forms if vecs <= 4 else forms[:2]:
                out.append(rows_variant(op, elem, lanes, vecs, threads, MIN_BLOCKS=blocks, **form))
            blocks = min_blocks(op, elem, vecs, threads, kept=vecs * 8)
            if ln and blocks:  # weights asked for before the row, or kept over a few rows
                for waves in (0, 1, 2, 4):
                    out.append(rows_variant(op, elem, lanes, vecs, threads, waves=waves, MIN_BLOCKS=blocks, WEIGHTS=1, **forms[1]))
            blocks = min_blocks(op, elem, vecs, threads, kept=vecs * 12)
            if ln and blocks:
                out.append(rows_variant(op, elem, lanes, vecs, threads, waves=2, MIN_BLOCKS=blocks, WEIGHTS=1, PREFETCH=1, **forms[1]))
    if op == "cumsum":
        pass  # rows in registers of one block only
    elif slots <= 2048:  # up to 32 KB: one ring, to compare with
        warps = 1 if slots <= 256 else 4
        more = {"WEIGHTS": 2} if ln else {}
        if slots // 32 // warps <= 8:
            out.append(ring_variant(op, elem, warps, slots // 32 // warps, 2, groups=8 // warps, STORE_FORM=1, **more))
    else:
        for cluster in (1, 2, 4, 8):
            for warps in (8, 16, 32):
                vecs = slots // 32 // warps // cluster
                values = vecs * 16 // elem
                blocks = min(65536 // (warps * 32 * (values + (32 if ln and values != 32 else 24))), 2048 // (warps * 32))
                if vecs < 2 or vecs > 16 or values > 64 or blocks < 1:
                    continue
                for stages, waves in [(1, 1), (1, 4), (2, 1)] + [(s, w) for s in (1, 2) for w in (0.97, 0.94, 0.9) if cluster > 2]:
                    for weights in ([2, 0] if ln else [None]):
                        more = {} if weights is None else {"WEIGHTS": weights}
                        fit = ring_variant(op, elem, warps, vecs, stages, cluster, waves=waves, STORE_FORM=0, MIN_BLOCKS=blocks, **more)
                        if (fit.shared_bytes + 3000) * blocks <= 227 * 1024 and (weights != 0 or stages == 1 or cluster <= 2):
                            out.append(fit)
                if ln and blocks > 1:
                    more = {"WEIGHTS": 2}
                    for waves in (1, 0.94, 4):
                        fit = ring_variant(op, elem, warps, vecs, 1, cluster, waves=waves, STORE_FORM=0, MIN_BLOCKS=1, **more)
                        if fit.shared_bytes <= 225 * 1024:
                            out.append(fit)
    seen, unique = set(), []
    for v in out:
        if v.name not in seen:
            seen.add(v.name)
            unique.append(v)
    return unique


def ragged_variants(op, elem, n):
    """Candidates for rows that are no power of two long: threads in steps of a warp, vectors to fit."""
    per_vec = 16 // elem
    kind = 1 if n % per_vec == 0 else 2
    slots = -(-(n + (per_vec - 1 if kind == 2 else 0)) // per_vec)
    out = []
    for vecs in range(1, 9):
        lanes = -(-slots // (32 * vecs)) * 32
        blocks = min_blocks(op, elem, vecs, lanes, kind) if lanes <= 1024 else 0
        for more in {blocks, blocks + 1} if blocks else ():
            out.append(rows_variant(op, elem, lanes, vecs, lanes, kind, MIN_BLOCKS=more, LOAD_FORM=0, STORE_FORM=0))
    if slots > 2048 and op != "cumsum":
        for cluster in (2, 4, 8):
            for warps in (8, 16, 32):
                vecs = -(-slots // (32 * warps * cluster))
                blocks = min_blocks(op, elem, vecs, warps * 32, kind)
                for more in {blocks, blocks + 1} if vecs * 16 // elem <= 64 else ():
                    for waves in (1, 4) if cluster == 2 else (0.9, 4):
                        if 65536 // (max(1, more) * warps * 32) >= vecs * 16 // elem + 24:
                            out.append(ring_variant(op, elem, warps, vecs, 1, cluster, kind=kind, waves=waves, MIN_BLOCKS=max(1, more),
                                                    STORE_FORM=0, **({"WEIGHTS": 0} if op == "layernorm" else {})))
    return list({v.name: v for v in out}.values())


def best_variant(op, elem, n):
    """The choice for rows of n elements: the measured winners of the sweep, widened to the next capacity that holds n."""
    if op == "transpose":
        return Variant("transpose.cu", dict(ELEM_BYTES=elem, TILE_R=128 if elem == 2 else 64, THREADS=512 if elem == 2 else 256,
                                            RASTER=1, LOAD_FORM=0, STORE_FORM=0))
    if op == "colsum":
        return Variant("colsum.cu", dict(ELEM_BYTES=elem, THREADS=256, LANES=32, UNROLL=8, LOAD_FORM=1), 1)
    per_vec = 16 // elem
    aligned = n % per_vec == 0
    slots = -(-(n + (0 if aligned else per_vec - 1)) // per_vec)  # 16-byte slots that a row may touch
    ln = op == "layernorm"

    def kind_for(capacity_slots):
        return 2 if not aligned else 0 if capacity_slots * per_vec == n else 1

    forms = dict(LOAD_FORM=0, STORE_FORM=0)
    if slots <= 32:  # part of a warp per row
        lanes = 4
        while lanes < slots:
            lanes *= 2
        return rows_variant(op, elem, lanes, 1, 128, kind_for(lanes), **forms, MIN_BLOCKS=min_blocks(op, elem, 1, 128, kind_for(lanes)))
    if slots <= 4096:  # a warp, a few warps or a whole block per row: two vectors a thread, more where weights come along
        fewest = -(-slots // 1024)
        if slots & (slots - 1) == 0 and aligned:
            vecs = max(fewest, ((8 if slots > 256 else 4) if elem == 2 else (4 if slots > 256 else 2)) if ln else 2)
        else:  # ragged: fat threads; of three widths, the one that leaves the fewest slots empty
            widths = (5, 4, 6) if ln and not aligned else (4, 3, 5)
            vecs = min((w for w in widths if w >= fewest), default=fewest, key=lambda w: -(-slots // (32 * w)) * w)
        lanes = -(-slots // (32 * vecs)) * 32
        kind = kind_for(lanes * vecs)
        threads = 128 if ln and elem == 2 and lanes < 128 and 128 % lanes == 0 else max(lanes, 64 if 64 % lanes == 0 else lanes)
        return rows_variant(op, elem, lanes, vecs, threads, kind, **forms, MIN_BLOCKS=max(1, min_blocks(op, elem, vecs, threads, kind)))
    if op == "cumsum":
        return None
    if elem == 2 and slots == 8192 and aligned:  # the sweep's winner for rows of 128 KB: four blocks a multiprocessor
        return ring_variant(op, elem, 8, 4, 1, 8, kind=kind_for(8192), STORE_FORM=0, waves=4, MIN_BLOCKS=4,
                            **({"WEIGHTS": 2} if ln else {}))
    # A block of 32 warps has 64 registers a thread: enough for 32 values and no predicates. Ragged rows take 16 warps.
    for cluster in (2, 4, 8):
        for warps, exact, ragged in ((32, 32, 20), (16, 64, 64 if aligned and not ln else 48)):
            vecs = -(-slots // (cluster * warps * 32))
            kind = kind_for(cluster * warps * 32 * vecs)
            if vecs * 16 // elem <= (exact if kind == 0 else ragged):
                return ring_variant(op, elem, warps, vecs, 1, cluster, kind=kind, STORE_FORM=0, waves={2: 1, 4: 0.9, 8: 4}[cluster],
                                    **({"WEIGHTS": 0} if ln else {}))
    return None  # longer than a cluster of eight holds in registers


# Copies that the sweep found fastest; every case is timed beside them, on its own number of bytes.
BEST_STREAMS = [
    Variant("stream.cu", dict(MODE=0, THREADS=512, UNROLL=1, LOAD_FORM=0, STORE_FORM=0)),
    Variant("stream.cu", dict(MODE=0, THREADS=1024, UNROLL=2, LOAD_FORM=0, STORE_FORM=0)),
    Variant("stream.cu", dict(MODE=1, THREADS=512, UNROLL=4, LOAD_FORM=1)),
]
