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
    slots = n * elem // 16
    out = []
    ln = op == "layernorm"
    forms = [dict(LOAD_FORM=0, STORE_FORM=0), dict(LOAD_FORM=0, STORE_FORM=1), dict(LOAD_FORM=1, STORE_FORM=1)]

    def registers(threads, blocks):
        return 65536 // (threads * blocks)

    for lanes in (32, 64, 128, 256, 512, 1024):
        vecs = slots // lanes
        if vecs * lanes != slots or not 1 <= vecs <= 8:
            continue
        values = vecs * 16 // elem
        for threads in {lanes, max(lanes, 128), max(lanes, 256)}:
            if threads < 64:
                continue
            need = values + (36 if ln else 28 if op == "cumsum" else 22)
            fits = [b for b in (2048 // threads, 1536 // threads, 1280 // threads, 1024 // threads, 768 // threads, 512 // threads)
                    if b and registers(threads, b) >= need]
            if not fits:
                continue
            for form in forms if vecs <= 4 else forms[:2]:
                out.append(rows_variant(op, elem, lanes, vecs, threads, MIN_BLOCKS=min(32, fits[0]), **form))
            if ln:  # weights asked for before the row, or kept over a few rows
                fits = [b for b in fits if registers(threads, b) >= need + vecs * 8]
                if fits:
                    for waves in (0, 1, 2, 4):
                        out.append(rows_variant(op, elem, lanes, vecs, threads, waves=waves, MIN_BLOCKS=min(32, fits[0]), WEIGHTS=1,
                                                **forms[1]))
                    fits = [b for b in fits if registers(threads, b) >= need + vecs * 12]
                    if fits:
                        out.append(rows_variant(op, elem, lanes, vecs, threads, waves=2, MIN_BLOCKS=min(32, fits[0]), WEIGHTS=1,
                                                PREFETCH=1, **forms[1]))
    kib = n * elem // 1024
    if op == "cumsum":
        pass  # rows in registers only
    elif kib <= 32:  # one ring of each kind, to compare with
        warps = 1 if kib <= 4 else 4
        more = {"WEIGHTS": 2} if ln else {}
        out.append(ring_variant(op, elem, warps, slots // 32 // warps, 2, groups=8 // warps, STORE_FORM=1, **more))
    else:
        for cluster in (2, 4, 8):
            for warps in (8, 16, 32):
                vecs = slots // 32 // warps // cluster
                values = vecs * 16 // elem
                need = values + (34 if ln else 26)
                if vecs < 1 or vecs > 16 or values > 64 or need * warps * 32 > 65536:
                    continue
                blocks = min(65536 // (warps * 32 * need), 2048 // (warps * 32))
                for stages, waves in [(0, 0), (0, 2), (1, 0), (1, 1), (1, 2), (1, 4)]:
                    for weights in ([2, 0] if ln else [None]):
                        if ln and (weights == 2) != (stages > 0 and waves > 0 and cluster == 2 or waves == 2 and cluster > 2):
                            continue
                        more = {} if weights is None else {"WEIGHTS": weights}
                        v = ring_variant(op, elem, warps, vecs, stages, cluster, waves=waves, LOAD_FORM=0, STORE_FORM=1,
                                         MIN_BLOCKS=blocks, **more)
                        if v.shared_bytes <= 225 * 1024:
                            out.append(v)
                if cluster == 2:
                    more = {"WEIGHTS": 0} if ln else {}
                    out.append(ring_variant(op, elem, warps, vecs, 1, 2, waves=1, STORE_FORM=0, MIN_BLOCKS=blocks, **more))
                    out.append(ring_variant(op, elem, warps, vecs, 1, 2, waves=1, STORE_FORM=1, EVICT_FIRST=1, MIN_BLOCKS=blocks, **more))
                    out.append(ring_variant(op, elem, warps, vecs, 1, 2, waves=1, STORE_FORM=1, MIN_BLOCKS=blocks, **more))
    seen, unique = set(), []
    for v in out:
        if v.name not in seen:
            seen.add(v.name)
            unique.append(v)
    return unique


def best_variant(op, elem, n):
    """The choice for rows of n elements: the measured winners of the sweep, widened to the next capacity that holds n."""
    if op == "transpose":
        return Variant("transpose.cu", dict(ELEM_BYTES=elem, TILE_R=64, THREADS=256, RASTER=0, LOAD_FORM=0, STORE_FORM=0))
    if op == "colsum":
        return Variant("colsum.cu", dict(ELEM_BYTES=elem, THREADS=256, LANES=64, UNROLL=8, LOAD_FORM=1), 1)
    kind = 0
    per_vec = 16 // elem
    aligned = n % per_vec == 0
    slots = -(-(n + (0 if aligned else per_vec - 1)) // per_vec)  # 16-byte slots that a row may touch
    ln = op == "layernorm"

    def kind_for(capacity_slots):
        return 2 if not aligned else 0 if capacity_slots == slots else 1

    if slots <= 256:  # up to 4 KB: a warp (or part of one) per row
        lanes = 32
        while lanes > 4 and slots <= lanes // 2:
            lanes //= 2
        vecs = 1
        while lanes * vecs < slots:
            vecs *= 2
        kind = kind_for(lanes * vecs)
        return rows_variant(op, elem, lanes, vecs, 128, kind, STORE_FORM=1)
    if slots <= 2048:  # up to 32 KB: part of a block per row
        vecs = 4
        lanes = 64
        while lanes * vecs < slots:
            lanes *= 2
        kind = kind_for(lanes * vecs)
        return rows_variant(op, elem, lanes, vecs, lanes, kind, STORE_FORM=1)
    cluster, vecs, warps = 2, 4, 16
    while cluster * vecs * warps * 32 < slots:
        if cluster < 4:
            cluster *= 2
        elif vecs < 8:
            vecs *= 2
        elif cluster < 8:
            cluster *= 2
        else:
            return None  # longer than a cluster of eight holds in registers
    kind = kind_for(cluster * vecs * warps * 32)
    more = {"WEIGHTS": 0} if ln else {}
    return ring_variant(op, elem, warps, vecs, 1, cluster, kind=kind, STORE_FORM=1, **more)


# Copies that the sweep found fastest; every case is timed beside them, on its own number of bytes.
BEST_STREAMS = [
    Variant("stream.cu", dict(MODE=0, THREADS=1024, UNROLL=2, LOAD_FORM=0, STORE_FORM=0)),
    Variant("stream.cu", dict(MODE=0, THREADS=512, UNROLL=2, LOAD_FORM=0, STORE_FORM=0)),
    Variant("stream.cu", dict(MODE=1, THREADS=256, UNROLL=8, LOAD_FORM=1)),
]
