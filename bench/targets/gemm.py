#!/usr/bin/env python3
"""Checks, sweeps and times the GEMM targets against autotuned cuBLASLt.

    gemm.py check            every variant, many shapes, poisoned outputs, against an fp32 reference
    gemm.py sweep [MxNxK..]  every variant on each shape, interleaved with the peer
    gemm.py skinny           the same for the skinny kernel (T tokens, N = K = 8192)
    gemm.py misaligned       the same for shapes whose rows TMA cannot address
    gemm.py time             the chosen variant per case, interleaved with the peer; JSON rows for the report

Everything measured is appended to $OUTDIR/gemm.jsonl as it is known. A variant that hangs or faults ends the process
(watchdog); running the same command again goes on after it.
"""
import json
import math
import os
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import torch  # noqa: E402

import harness as tw  # noqa: E402

OUTDIR = os.environ.get("OUTDIR", ".")
L2_BYTES = 50 << 20
SMS = 132


# ---------------------------------------------------------------- journal: one JSON line per fact, resumable


class Journal:
    """Appends JSON lines; remembers which keys were begun, so that a rerun skips what already ended the process."""

    def __init__(self, name):
        self.path = os.path.join(OUTDIR, name)
        self.begun, self.results = set(), {}
        if os.path.exists(self.path):
            for line in open(self.path):
                row = json.loads(line)
                if "begin" in row:
                    self.begun.add(row["begin"])
                if "check" in row:
                    self.results["check " + row["check"]] = row

    def put(self, **row):
        with open(self.path, "a") as f:
            f.write(json.dumps(row) + "\n")

    def guarded(self, key, seconds, fn):
        """Runs fn() once per key; a hang exits the process after `seconds`, a CUDA fault exits at once."""
        if key in self.begun:  # known from an earlier process: its result, or None where it ended that process
            return self.results.get(key)
        self.begun.add(key)
        self.put(begin=key)
        timer = threading.Timer(seconds, lambda: (self.put(key=key, error="hang"), print(key, "HANG", flush=True), os._exit(3)))
        timer.daemon = True
        timer.start()
        try:
            out = fn()
            torch.cuda.synchronize()
            return out
        except Exception as e:  # a sticky CUDA error poisons the context: leave, the rerun continues
            self.put(key=key, error=str(e)[:300])
            print(key, "ERROR", str(e)[:300], flush=True)
            os._exit(4)
        finally:
            timer.cancel()


# ---------------------------------------------------------------- gemm_sm90: variants and launch

DEFAULTS = dict(BM=128, BN=256, BK=64, STAGES=4, CONSUMERS=2, PINGPONG=0, CLUSTER_M=2, CLUSTER_N=1, GROUP=8, EPI_BUFS=2)


def full(defines):
    return {**DEFAULTS, **defines}


def label(defines):
    d = full(defines)
    s = f"{d['BM']}x{d['BN']}x{d['BK']} s{d['STAGES']} c{d['CLUSTER_M']}x{d['CLUSTER_N']} g{d['GROUP']} e{d['EPI_BUFS']}"
    if d["PINGPONG"]:
        s += " pp"
    for k in sorted(d):
        if k not in DEFAULTS:
            s += f" {k}={d[k]}"
    return s


def smem_bytes(defines):
    d = full(defines)
    stage = (d["BM"] + d["BN"]) * d["BK"] * 2
    return d["STAGES"] * stage + d["CONSUMERS"] * d["EPI_BUFS"] * 8192 + 16 * d["STAGES"]


def prepare_gemm(kernel, defines, a, b, c, extra=(), k=None):
    """A prepared launch of gemm_sm90 for these tensors (c may have a row pitch that TMA cannot store)."""
    d = full(defines)
    m, k = a.shape[0], k or a.shape[1]
    n = b.shape[0]
    cluster = d["CLUSTER_M"] * d["CLUSTER_N"]
    pitch_a, pitch_b, pitch_c = a.stride(0) * 2, b.stride(0) * 2, c.stride(0) * 2
    map_a = tw.tensor_map(a, dtype="bf16", dims=[a.shape[1], m], strides=[pitch_a], box=[64, d["BM"] // d["CLUSTER_N"]], swizzle=128,
                          l2_promotion=d.get("PROMO", 128))
    map_b = tw.tensor_map(b, dtype="bf16", dims=[b.shape[1], n], strides=[pitch_b], box=[64, d["BN"] // d["CLUSTER_M"]], swizzle=128,
                          l2_promotion=d.get("PROMO", 128))
    if d.get("STORE_DIRECT") or d.get("STORE_VECTOR"):
        out = [c, tw.i32(c.stride(0))]
    else:
        out = [tw.tensor_map(c, dtype="bf16", dims=[n, m], strides=[pitch_c], box=[64, d.get("STORE_ROWS", 64)], swizzle=128)]
    tiles = math.ceil(m / (d["BM"] * d["CLUSTER_M"])) * math.ceil(n / (d["BN"] * d["CLUSTER_N"])) * cluster
    grid = d.get("CTAS", SMS) // cluster * cluster  # CTAS: fewer than the SMs, where that makes the waves even
    if not d.get("REPACK"):  # a repacking launch uses every SM to copy
        grid = min(grid, tiles)
    return kernel.prepare(grid=(grid, 1, 1), block=(128 * (1 + d["CONSUMERS"]), 1, 1),
                          args=[map_a, map_b, *out, *extra, tw.i32(m), tw.i32(n), tw.i32(k)], smem=smem_bytes(d),
                          cluster=(cluster, 1, 1) if cluster > 1 else None, pdl=bool(d.get("PDL")))


def operands(m, n, k, seed):
    g = torch.Generator(device="cuda").manual_seed(seed)
    a = torch.randn(m, k, device="cuda", generator=g, dtype=torch.float32).to(torch.bfloat16)
    b = torch.randn(n, k, device="cuda", generator=g, dtype=torch.float32).to(torch.bfloat16)
    c = torch.full((m, n), float("nan"), device="cuda", dtype=torch.bfloat16)
    return a, b, c


def sets_for(m, n, k):
    """Enough operand sets that together they are several times the L2."""
    one = 2 * (m * k + n * k + m * n)
    return [operands(m, n, k, 100 + i) for i in range(max(1, min(32, math.ceil(4 * L2_BYTES / one))))]


def reference(a, b):
    return a.float() @ b.float().t()


# ---------------------------------------------------------------- the three verbs

def wide(bn, **more):
    """A 128 x bn tile with 16-byte stores and as many stages as fit beside one staging buffer."""
    stages = min(8, (232448 - 2 * 8192) // ((128 + bn) * 128 + 16))
    return dict(BN=bn, STAGES=stages, EPI_BUFS=1, STORE_VECTOR=1, PDL=1, **more)


VARIANTS = [dict(PDL=1), dict(PDL=1, GROUP=4), dict(BN=192, STAGES=4, EPI_BUFS=3, PDL=1), wide(192), wide(208), wide(224), wide(256)]
SHAPES = [(2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (8192, 28672, 8192)]
CHECK_SHAPES = [(128, 256, 64), (8, 8, 8), (4096, 4096, 72), (2000, 2008, 128), (200, 328, 1000), (1000, 3000, 776), (4096, 2048, 512), (129, 264, 4104), (3000, 1032, 200)]


HOST_ONLY = ("CTAS", "PROMO")  # launch choices: not macros of the kernel


def macros(v):
    return {k: x for k, x in v.items() if k not in HOST_ONLY}


class Family:
    """One kernel with its variants: how to compile, launch and check them."""

    def __init__(self, name, source, entry, variants, prepare, check_shapes, label):
        self.name, self.source, self.entry = name, os.path.join(HERE, source), entry
        self.variants, self.prepare, self.check_shapes, self.label = variants, prepare, check_shapes, label

    def compiled(self, journal, variants=None):
        variants = variants or self.variants
        kernels = tw.compile_many([dict(source_path=self.source, entry=self.entry, defines=macros(v)) for v in variants], workers=16)
        out = []
        for v, kern in zip(variants, kernels):
            name = self.label(v)
            if kern.error and "entries: none" in kern.error:  # seen once in a parallel batch
                kern = tw.compile_many([dict(source_path=self.source, entry=self.entry, defines=macros(v), cache=False)], workers=1)[0]
            if getattr(kern, "error", None):
                journal.put(key=name, error="compile: " + kern.error[-300:])
                print(name, "COMPILE ERROR", kern.error[-300:], flush=True)
                continue
            if kern.spill_bytes:
                print(name, "SPILLS", kern.spill_bytes, flush=True)
            out.append((v, kern))
        return out

    def checked(self, journal, variants=None):
        """The variants that compile and are right on every check shape."""
        good = []
        for v, kern in self.compiled(journal, variants):
            name = f"{self.name} {self.label(v)}"

            def one():
                worst = 0.0
                for i, (m, n, k) in enumerate(self.check_shapes(v)):
                    a, b, c = operands(m, n, k, 7 * i + 1)
                    launch = self.prepare(kern, v, a, b, c)
                    for again in range(2):  # twice: a persistent counter or a stale buffer would show the second time
                        c.fill_(float("nan"))
                        launch()
                        torch.cuda.synchronize()
                        r = tw.check(c, reference(a, b), 6e-3)
                        if not r["ok"]:
                            return dict(ok=False, shape=[m, n, k], again=again, rel_fro=float(r["rel_fro"]), nan=int(r["nan"]))
                        worst = max(worst, float(r["rel_fro"]))
                return dict(ok=True, rel_fro=worst)

            r = journal.guarded("check " + name, 8, one)
            if r is None:
                continue
            if "check" not in r:
                journal.put(check=name, regs=kern.registers, **r)
            if not r["ok"]:
                print("check", name, r, flush=True)
            else:
                good.append((v, kern))
        print(f"{self.name}: {len(good)} of {len(variants or self.variants)} variants right", flush=True)
        return good


def peer_gemm(m, n, k, data):
    """cuBLASLt, best of its heuristics; torch.mm where cuBLASLt's heuristics return nothing."""
    try:
        lt = tw.cublaslt_gemm(m, n, k, dtype="bf16", layout="TN", tune=True)
        lt.run(*data[0])
        torch.cuda.synchronize()
        return "cuBLASLt", lambda i: lt.run(*data[i])
    except Exception as e:
        print("cublaslt:", str(e)[:200], "-> torch.mm", flush=True)
        return "torch.mm", lambda i: torch.mm(data[i][0], data[i][1].t(), out=data[i][2])


def sweep(journal, families, shapes, rounds=7):
    """families: [(family, [(variant, kernel), ...]), ...]; all of them and the peer are interleaved on each shape."""
    for m, n, k in shapes:
        usable = [(family, v, kern) for family, good in families for v, kern in good if m <= v.get("TOKENS", m)]
        data = sets_for(m, n, k)
        peer_name, peer_fn = peer_gemm(m, n, k, data)
        fns = {"peer": peer_fn}
        for family, v, kern in usable:
            launches = [family.prepare(kern, v, *s) for s in data]
            fns[f"{family.name} {family.label(v)}"] = lambda i, launches=launches: launches[i]()
        flop = 2.0 * m * n * k
        floor_s = max(flop / 7e14, 2.0 * (m * k + n * k + m * n) / 4.2e12)
        calls = max(1, min(24, int(1.5e-3 / floor_s)) // len(data)) * len(data)
        res = tw.interleave(fns, rotations=len(data), calls_per_graph=calls, rounds=rounds, baseline="peer")
        peer = res["peer"]["median_us"]
        rows = sorted(((res[x]["median_us"], x) for x in fns))
        for us, x in rows:
            journal.put(sweep=[m, n, k], variant=x, us=us, lo=res[x]["lo_us"], hi=res[x]["hi_us"], ratio=peer / us)
        print(f"--- {m}x{n}x{k}  {peer_name} {peer:.1f} us {flop / peer * 1e-6:.0f} TF/s")
        for us, x in rows:
            print(f"   {peer / us:.3f}  {us:9.2f} us {flop / us * 1e-6:6.0f} TF/s  [{res[x]['lo_us']:.1f} {res[x]['hi_us']:.1f}]  {x}", flush=True)
        del data, fns
        torch.cuda.empty_cache()


# ---------------------------------------------------------------- gemm_overlap


def overlap(bn, cluster_m=1, cluster_n=2, group=16, **more):
    stages = min(8, (232448 - 2 * 8192) // ((128 + bn) * 128 + 16))
    return dict(BN=bn, STAGES=stages, CLUSTER_M=cluster_m, CLUSTER_N=cluster_n, GROUP=group, PDL=1, **more)


def overlap_label(d):
    more = "".join(f" {k}={d[k]}" for k in sorted(d) if k not in ("BN", "STAGES", "CLUSTER_M", "CLUSTER_N", "GROUP", "PDL"))
    return f"128x{d['BN']} s{d['STAGES']} c{d['CLUSTER_M']}x{d['CLUSTER_N']} g{d['GROUP']}" + (" pdl" if d["PDL"] else "") + more


def prepare_overlap(kernel, d, a, b, c):
    m, k = a.shape
    n = b.shape[0]
    cluster = d["CLUSTER_M"] * d["CLUSTER_N"]
    map_a = tw.tensor_map(a, dtype="bf16", dims=[k, m], strides=[k * 2], box=[64, 128 // d["CLUSTER_N"]], swizzle=128, l2_promotion=128)
    map_b = tw.tensor_map(b, dtype="bf16", dims=[k, n], strides=[k * 2], box=[64, d["BN"] // d["CLUSTER_M"]], swizzle=128, l2_promotion=128)
    tiles = math.ceil(m / (128 * d["CLUSTER_M"])) * math.ceil(n / (d["BN"] * d["CLUSTER_N"])) * cluster
    grid = min(SMS // cluster * cluster, tiles)
    smem = d["STAGES"] * ((128 + d["BN"]) * 128 + 16) + 2 * 8192
    return kernel.prepare(grid=(grid, 1, 1), block=(384, 1, 1), args=[map_a, map_b, c, tw.i32(m), tw.i32(n), tw.i32(k)], smem=smem,
                          cluster=(cluster, 1, 1) if cluster > 1 else None, pdl=bool(d["PDL"]))


OVERLAP = ([overlap(bn, 2, 1, g) for bn in (128, 168, 176) for g in (6, 8)] + [overlap(144, 2, 1, 8), overlap(112, 2, 1, 8)]
           + [overlap(bn, 1, 2, 16) for bn in (128, 152, 168)])
FAMILY_OVERLAP = Family("overlap", "gemm_overlap.cu", "gemm_overlap", OVERLAP, prepare_overlap, lambda d: CHECK_SHAPES, overlap_label)


# ---------------------------------------------------------------- gemm_skinny


def skinny(tokens, rows=64, bk=128, split=1, share=1, stages=None):
    stage = (rows + tokens) * bk * 2
    most = (232448 - 1024 - 32 - tokens * (rows + 4) * 4) // (stage + 16)
    stages = min(stages or most, most)
    return dict(TOKENS=tokens, ROWS=rows, BK=bk, STAGES=stages, SPLIT=split, SHARE=share)


def prepare_skinny(kernel, d, x, w, out):
    t, k = x.shape
    n = w.shape[0]
    cluster = d["SPLIT"] * d["SHARE"]
    smem = d["STAGES"] * (d["ROWS"] + d["TOKENS"]) * d["BK"] * 2 + d["TOKENS"] * (d["ROWS"] + 4) * 4 + 16 * d["STAGES"] + 16 + 1024
    map_x = tw.tensor_map(x, dtype="bf16", dims=[k, t], strides=[k * 2], box=[64, d["TOKENS"] // d["SHARE"]], swizzle=128, l2_promotion=128)
    map_w = tw.tensor_map(w, dtype="bf16", dims=[k, n], strides=[k * 2], box=[64, d["ROWS"]], swizzle=128, l2_promotion=128)
    tiles = math.ceil(n / (d["ROWS"] * d["SHARE"]))
    grid = min(SMS // cluster, tiles) * cluster
    return kernel.prepare(grid=(grid, 1, 1), block=(128 * (1 + d["ROWS"] // 64), 1, 1),
                          args=[map_x, map_w, out, tw.i32(t), tw.i32(n), tw.i32(k)], smem=smem,
                          cluster=(cluster, 1, 1) if cluster > 1 else None, pdl=bool(d.get("PDL")))


def skinny_label(d):
    return " ".join(f"{x.lower()}{d[x]}" for x in ("TOKENS", "ROWS", "BK", "STAGES", "SPLIT", "SHARE")) + (" pdl" if d.get("PDL") else "")


SKINNY = [{**v, "PDL": 1} for v in (skinny(16), skinny(16, bk=256), skinny(8), skinny(8, bk=256), skinny(64), skinny(128, 128, 64, split=2),
                                    skinny(128, bk=64))]
FAMILY_SKINNY = Family("skinny", "gemm_skinny.cu", "gemm_skinny", SKINNY, prepare_skinny,
                       lambda d: [(d["TOKENS"], 8192, 8192), (d["TOKENS"] - 3, 200, 328), (1, 8, 8), (d["TOKENS"] - 1, 28672, 520)], skinny_label)


# ---------------------------------------------------------------- shapes whose rows TMA cannot address


def prepare_any(kernel, defines, a, b, c):
    """gemm_sm90 with REPACK and/or STORE_DIRECT, as the operands need."""
    d = full(defines)
    if not d.get("REPACK"):
        return prepare_gemm(kernel, defines, a, b, c)
    m, k = a.shape
    n = b.shape[0]
    kp, pitch = (k + 7) // 8 * 8, (k + 63) // 64 * 64
    ap = torch.full((m, pitch), float("nan"), device="cuda", dtype=torch.bfloat16)[:, :kp]
    bp = torch.full((n, pitch), float("nan"), device="cuda", dtype=torch.bfloat16)[:, :kp]
    arrived = torch.zeros(1, device="cuda", dtype=torch.int32)
    return prepare_gemm(kernel, defines, ap, bp, c, extra=[a, b, ap, bp, arrived], k=k)


MISALIGNED = [
    dict(BN=192, STAGES=5, EPI_BUFS=1, REPACK=1),
    dict(BN=192, STAGES=5, EPI_BUFS=1, REPACK=1, STORE_DIRECT=1),
    dict(REPACK=1, STORE_DIRECT=1, BM=256, BN=128),
    dict(STORE_DIRECT=1, BM=256, BN=128),
]


def misaligned_shapes(d):
    shapes = []
    for m, n, k in [(1000, 3000, 777), (257, 264, 99), (100, 1001, 333), (4095, 4097, 4104), (4096, 4096, 4104), (4095, 4097, 4096), (129, 71, 72), (5, 3, 1), (777, 640, 1025)]:
        if (k % 8 == 0 or d.get("REPACK")) and (n % 8 == 0 or d.get("STORE_DIRECT")):
            shapes.append((m, n, k))
    return shapes


FAMILY_GEMM = Family("gemm", "gemm_sm90.cu", "gemm", [full(v) for v in VARIANTS], prepare_gemm, lambda d: CHECK_SHAPES, label)
FAMILY_MISALIGNED = Family("misaligned", "gemm_sm90.cu", "gemm", [full(v) for v in MISALIGNED], prepare_any, misaligned_shapes, label)


# ---------------------------------------------------------------- the choice per shape, and the report's rows


def families_for(m, n, k):
    """The kernels that can compute a shape."""
    if k % 8 or n % 8:
        return [FAMILY_MISALIGNED]
    if m <= 128 and n >= 1024:
        return [FAMILY_SKINNY]
    return [FAMILY_OVERLAP, FAMILY_GEMM]


def choose(m, n, k):
    """(family, variant) for a shape: the fastest of the sweep in this journal, else the table of docs/performance/gemm.md."""
    named = {f"{f.name} {f.label(v)}": (f, v) for f in families_for(m, n, k) for v in f.variants}
    best = None
    path = os.path.join(OUTDIR, "gemm.jsonl")
    for line in open(path) if os.path.exists(path) else []:
        row = json.loads(line)
        if row.get("sweep") == [m, n, k] and row["variant"] in named and (best is None or row["us"] < best[0]):
            best = (row["us"], row["variant"])
    if best:
        return named[best[1]]
    return table(m, n, k)


def table(m, n, k):
    if m <= 128 and n >= 1024 and k % 8 == 0 and n % 8 == 0:
        t = 8 if m <= 8 else 16 if m <= 16 else 64 if m <= 64 else 128
        return FAMILY_SKINNY, {**skinny(t, bk=64 if t == 128 else 128), "PDL": 1}
    if k % 8 or n % 8:
        v = dict(BM=256, BN=128) if m >= 2048 else dict(BN=192, STAGES=5, EPI_BUFS=1)
        if k % 64:  # k % 8: TMA cannot address the rows; k % 64: they do not start on 128-byte lines, and loads are slow
            v.update(REPACK=1)
        if n % 8:
            v.update(STORE_DIRECT=1)
        return FAMILY_MISALIGNED, full(v)
    def waves(bn):  # of 66 clusters of two 128 x bn tiles
        return math.ceil(math.ceil(m / 256) * math.ceil(n / bn) / (SMS // 2))

    if waves(256) <= 4:  # too few tiles for a narrower one to fill the last wave better
        return FAMILY_GEMM, full(dict(PDL=1, GROUP=4))
    return FAMILY_OVERLAP, overlap(min((168, 176), key=lambda bn: waves(bn) * bn), 2, 1, 8)


TIMED = SHAPES + [(1, 8192, 8192), (8, 8192, 8192), (16, 8192, 8192), (64, 8192, 8192), (128, 8192, 8192), (1000, 3000, 777), (4095, 4097, 4104)]


def time_chosen(journal, shapes, rounds=25):
    """Rows for the report: the chosen variant, and where it uses dependent launch the same one without."""
    rows = []
    for m, n, k in shapes:
        family, v = choose(m, n, k)
        data = sets_for(m, n, k)
        peer_name, peer_fn = peer_gemm(m, n, k, data)
        fns, picked = {"peer": peer_fn}, {}
        for d in [v] + ([{**v, "PDL": 0}] if v.get("PDL") else []):
            kern = tw.compile(family.source, entry=family.entry, defines=macros(d))
            launches = [family.prepare(kern, d, *s) for s in data]
            name = f"{family.name} {family.label(d)}"
            picked[name] = (d, launches)
            fns[name] = lambda i, launches=launches: launches[i]()
        res = tw.interleave(fns, rotations=len(data), rounds=rounds, baseline="peer")
        for name, (d, launches) in picked.items():
            for s, launch in zip(data, launches):  # the outputs that were timed, once more from poison
                s[2].fill_(float("nan"))
                launch()
            torch.cuda.synchronize()
            checks = [tw.check(s[2], reference(s[0], s[1]), 6e-3) for s in data[:2]]
            ratio = res["ratios"]["peer/" + name]
            row = dict(case=f"gemm bf16 TN {m}x{n}x{k}" + (" (dependent launch)" if d.get("PDL") else ""), ours_us=res[name]["median_us"],
                       peer=peer_name, peer_us=res["peer"]["median_us"], ratio=ratio["ratio"], interval=[ratio["lo"], ratio["hi"]],
                       l2=f"cold: {len(data)} operand sets in turn", notes=f"{name}; rel error {max(c['rel_fro'] for c in checks):.1e}",
                       ok=all(c["ok"] for c in checks))
            journal.put(row=row)
            rows.append(row)
            print(f"{row['case']:52s} ours {row['ours_us']:9.2f} us {2e-6 * m * n * k / row['ours_us']:6.0f} TF/s  {peer_name} {row['peer_us']:9.2f} us  "
                  f"ratio {row['ratio']:.3f} [{ratio['lo']:.3f} {ratio['hi']:.3f}]  {'ok' if row['ok'] else 'WRONG'}  {row['notes']}", flush=True)
        del data, fns, picked, launches
        torch.cuda.empty_cache()
        with open(os.path.join(OUTDIR, "gemm_rows.json"), "w") as f:
            json.dump(rows, f, indent=1)
    for kind in ("", " (dependent launch)"):
        big = [r["ratio"] for r in rows if any(r["case"] == f"gemm bf16 TN {m}x{n}x{k}{kind}" for m, n, k in SHAPES)]
        if big:
            print(f"geomean over {len(big)} large shapes{kind}: {math.exp(sum(map(math.log, big)) / len(big)):.3f}")


def main():
    verb = sys.argv[1] if len(sys.argv) > 1 else "check"
    journal = Journal("gemm.jsonl")
    t0 = time.time()
    shapes = [tuple(int(x) for x in s.split("x")) for s in sys.argv[2:]]
    if verb == "check":
        for family in (FAMILY_GEMM, FAMILY_OVERLAP, FAMILY_SKINNY, FAMILY_MISALIGNED):
            family.checked(journal)
    elif verb == "sweep":
        sweep(journal, [(f, f.checked(journal)) for f in (FAMILY_OVERLAP, FAMILY_GEMM)], shapes or SHAPES)
    elif verb == "skinny":
        good = FAMILY_SKINNY.checked(journal)
        for t in (16, 8, 64, 128):
            sweep(journal, [(FAMILY_SKINNY, [x for x in good if x[0]["TOKENS"] == t])], [(t, 8192, 8192)])
    elif verb == "misaligned":
        good = FAMILY_MISALIGNED.checked(journal)
        for shape in [(1000, 3000, 777), (4095, 4097, 4104)]:
            sweep(journal, [(FAMILY_MISALIGNED, [x for x in good if shape in misaligned_shapes(x[0])])], [shape])
    elif verb == "time":
        time_chosen(journal, shapes or TIMED)
    print(f"{verb}: {time.time() - t0:.1f} s", flush=True)


if __name__ == "__main__":
    main()
