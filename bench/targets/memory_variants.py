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
        return "stream" if self.file == "stream.cu" else self.file[:-3]

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
            return 0
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
    out = []
    for threads, unroll in [(256, 4), (512, 4), (1024, 4), (512, 8), (1024, 2), (256, 8), (1024, 1), (512, 2)]:
        for load, store in [(1, 0), (1, 1), (0, 0), (3, 1)]:
            out.append(Variant("stream.cu", dict(MODE=0, THREADS=threads, UNROLL=unroll, LOAD_FORM=load, STORE_FORM=store)))
        out.append(Variant("stream.cu", dict(MODE=0, THREADS=threads, UNROLL=unroll, LOAD_FORM=1, STORE_FORM=1), 1))
    for piece, stages, waves in [(8192, 4, 1), (16384, 4, 1), (16384, 6, 1), (32768, 4, 1), (16384, 12, 1), (8192, 8, 1)]:
        out.append(Variant("stream.cu", dict(MODE=2, THREADS=32, PIECE=piece, STAGES=stages), waves))
    return out


def read_variants():
    return [Variant("stream.cu", dict(MODE=1, THREADS=t, UNROLL=u, LOAD_FORM=f), w)
            for t, u in [(512, 4), (512, 8), (1024, 4), (256, 8)] for f in (1, 2) for w in (0, 1)]


def sweep_variants(op, elem, n):
    """Candidates for rows of n elements that fill the capacity exactly."""
    slots = n * elem // 16
    out = []
    ln = op == "layernorm"
    for lanes in (32, 64, 128, 256, 512, 1024):
        vecs = slots // lanes
        if vecs * lanes != slots or not 1 <= vecs <= (8 if elem == 4 else 4) * (2 if lanes == 1024 else 1):
            continue
        values = vecs * 16 // elem
        for threads in {max(lanes, 128), max(lanes, 256)}:
            fits = [b for b in (2048 // threads, 1536 // threads, 1024 // threads)
                    if b and 65536 // (b * threads) >= values + (34 if ln else 24)]
            if not fits and threads == 1024:
                continue  # 64 registers a thread cannot hold it
            blocks = fits[0] if fits else max(1, 512 // threads)
            out.append(rows_variant(op, elem, lanes, vecs, threads, MIN_BLOCKS=blocks, STORE_FORM=1))
            if threads == max(lanes, 256):
                out.append(rows_variant(op, elem, lanes, vecs, threads, MIN_BLOCKS=blocks, STORE_FORM=0))
                out.append(rows_variant(op, elem, lanes, vecs, threads, waves=1, MIN_BLOCKS=blocks, PREFETCH=1, STORE_FORM=1,
                                        **({"WEIGHTS": 1} if ln and 65536 // (blocks * threads) >= values + vecs * 8 + 30 else {})))
                if ln:
                    out.append(rows_variant(op, elem, lanes, vecs, threads, waves=1, MIN_BLOCKS=blocks, WEIGHTS=1, STORE_FORM=1))
    kib = n * elem // 1024
    w = {"WEIGHTS": 2} if ln else {}
    if kib <= 4:       # a warp or two per row
        for warps, vecs in [(1, slots // 32), (2, slots // 64)]:
            for groups, stages in [(8 // warps, 2), (8 // warps, 3), (16 // warps, 2), (4 // warps, 4)]:
                out.append(ring_variant(op, elem, warps, vecs, stages, groups=groups, STORE_FORM=1,
                                        **({"WEIGHTS": 1 if vecs <= 4 else 2} if ln else {})))
    elif kib <= 32:    # part of a block per row
        for warps in (2, 4, 8):
            vecs = slots // 32 // warps
            if vecs > 8:
                continue
            for groups, stages in [(1, 2), (1, 3), (max(1, 8 // warps), 2), (max(1, 16 // warps), 2)]:
                out.append(ring_variant(op, elem, warps, vecs, stages, groups=groups, STORE_FORM=1, **w))
            if ln and vecs <= 4:
                out.append(ring_variant(op, elem, warps, vecs, 2, groups=max(1, 8 // warps), STORE_FORM=1, WEIGHTS=1))
    else:
        for cluster in (1, 2, 4, 8):
            for warps in (8, 16, 32):
                vecs = slots // 32 // warps // cluster
                regs = vecs * 16 // elem
                packed = {}
                if regs * warps * 32 > 40000 and elem == 2 and not ln:
                    packed, regs = {"KEEP_PACKED": 1}, vecs * 4
                if vecs < 1 or vecs > 16 or regs > 64 or regs * warps * 32 > 40000:
                    continue
                for stages in (1, 2, 3, 4):
                    for weights in ([2, 0] if ln else [None]):
                        more = dict(packed)
                        if weights is not None:
                            more["WEIGHTS"] = weights
                        v = ring_variant(op, elem, warps, vecs, stages, cluster, STORE_FORM=1, **more)
                        if v.shared_bytes <= 225 * 1024 and (stages <= 2 or v.shared_bytes <= 160 * 1024):
                            out.append(v)
    seen, unique = set(), []
    for v in out:
        if v.name not in seen:
            seen.add(v.name)
            unique.append(v)
    return unique


def best_variant(op, elem, n):
    """The choice for rows of n elements: the measured winners of the sweep, widened to the next capacity that holds n."""
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
    Variant("stream.cu", dict(MODE=0, THREADS=512, UNROLL=4, LOAD_FORM=1, STORE_FORM=1)),
    Variant("stream.cu", dict(MODE=0, THREADS=256, UNROLL=4, LOAD_FORM=1, STORE_FORM=1)),
    Variant("stream.cu", dict(MODE=2, THREADS=32, PIECE=16384, STAGES=4), 1),
]
