#!/usr/bin/env python3
"""Checks, sweeps and times the GEMM targets against autotuned cuBLASLt.

    gemm.py check            every variant, many shapes, poisoned outputs, against an fp32 reference
    gemm.py sweep [shape..]  every variant on each shape, interleaved with the peer
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
        self.begun = set()
        if os.path.exists(self.path):
            for line in open(self.path):
                row = json.loads(line)
                if "begin" in row:
                    self.begun.add(row["begin"])

    def put(self, **row):
        with open(self.path, "a") as f:
            f.write(json.dumps(row) + "\n")

    def guarded(self, key, seconds, fn):
        """Runs fn() once per key; a hang exits the process after `seconds`, a CUDA fault exits at once."""
        if key in self.begun:
            return None
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
    return d["STAGES"] * stage + d["CONSUMERS"] * d["EPI_BUFS"] * 8192 + 16 * d["STAGES"] + 1024


def compile_gemm(variants):
    src = os.path.join(HERE, "gemm_sm90.cu")
    return tw.compile_many([dict(source_path=src, entry="gemm", defines=full(v)) for v in variants], workers=16)


def prepare_gemm(kernel, defines, a, b, c):
    """A prepared launch of gemm_sm90 for these tensors (c may have a row pitch that TMA cannot store)."""
    d = full(defines)
    m, k = a.shape
    n = b.shape[0]
    cluster = d["CLUSTER_M"] * d["CLUSTER_N"]
    pitch_a, pitch_b, pitch_c = a.stride(0) * 2, b.stride(0) * 2, c.stride(0) * 2
    map_a = tw.tensor_map(a, dtype="bf16", dims=[k, m], strides=[pitch_a], box=[64, d["BM"] // d["CLUSTER_N"]], swizzle=128,
                          l2_promotion=256)
    map_b = tw.tensor_map(b, dtype="bf16", dims=[k, n], strides=[pitch_b], box=[64, d["BN"] // d["CLUSTER_M"]], swizzle=128,
                          l2_promotion=256)
    if d.get("STORE_DIRECT"):
        out = [c, tw.i32(c.stride(0))]
    else:
        out = [tw.tensor_map(c, dtype="bf16", dims=[n, m], strides=[pitch_c], box=[64, 64], swizzle=128)]
    tiles = math.ceil(m / (d["BM"] * d["CLUSTER_M"])) * math.ceil(n / (d["BN"] * d["CLUSTER_N"])) * cluster
    grid = min(SMS // cluster * cluster, tiles)
    return kernel.prepare(grid=(grid, 1, 1), block=(128 * (1 + d["CONSUMERS"]), 1, 1),
                          args=[map_a, map_b, *out, tw.i32(m), tw.i32(n), tw.i32(k)], smem=smem_bytes(d),
                          cluster=(cluster, 1, 1) if cluster > 1 else None)


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

VARIANTS = [
    dict(),
    dict(GROUP=4),
    dict(GROUP=16),
    dict(CLUSTER_M=1, GROUP=16),
    dict(CLUSTER_M=1, GROUP=8),
    dict(CLUSTER_M=1, CLUSTER_N=2, GROUP=16),
    dict(CLUSTER_M=1, CLUSTER_N=2, GROUP=8),
    dict(STAGGER=1),
    dict(STAGGER=2),
    dict(STAGGER=3),
    dict(BN=128, STAGES=5, PINGPONG=1),
    dict(BN=128, STAGES=6, PINGPONG=1),
    dict(BN=128, STAGES=6, PINGPONG=1, CLUSTER_M=1, CLUSTER_N=2),
    dict(BN=128, STAGES=6, PINGPONG=1, CLUSTER_M=1, GROUP=16),
    dict(BM=64, BN=256, STAGES=4, PINGPONG=1, GROUP=16),
    dict(BM=256, BN=128, STAGES=4, CLUSTER_M=2, GROUP=4),
    dict(BM=256, BN=128, STAGES=4, CLUSTER_M=1, CLUSTER_N=2, GROUP=8),
    dict(BM=128, BN=192, STAGES=5, EPI_BUFS=1),
    dict(BM=256, BN=192, STAGES=3, EPI_BUFS=3),
    dict(HINT_A="last", HINT_B="first"),
    dict(HINT_C="normal"),
]
SHAPES = [(2048, 2048, 2048), (4096, 4096, 4096), (8192, 8192, 8192), (8192, 28672, 8192)]
CHECK_SHAPES = [(128, 256, 64), (8, 8, 8), (200, 328, 1000), (1000, 3000, 776), (4096, 2048, 512), (129, 264, 4104), (3000, 1032, 200)]


def choose(m, n, k):
    """The variant for a shape, from the sweeps recorded in docs/performance/gemm.md."""
    return dict()


def check(journal, variants):
    kernels = compile_gemm(variants)
    good = []
    for v, kern in zip(variants, kernels):
        name = label(v)
        if getattr(kern, "error", None):
            journal.put(key=name, error="compile: " + kern.error[-300:])
            print(name, "COMPILE ERROR", kern.error[-300:])
            continue
        if kern.spill_bytes:
            print(name, "SPILLS", kern.spill_bytes)

        def one():
            worst = 0.0
            for i, (m, n, k) in enumerate(CHECK_SHAPES):
                a, b, c = operands(m, n, k, 7 * i + 1)
                prepare_gemm(kern, v, a, b, c)()
                torch.cuda.synchronize()
                r = tw.check(c, reference(a, b), 6e-3)
                worst = max(worst, r["rel_fro"]) if not r["nan"] else float("nan")
                if not r["ok"]:
                    return dict(ok=False, shape=[m, n, k], **{x: r[x] for x in ("rel_fro", "nan")})
            return dict(ok=True, rel_fro=worst)

        r = journal.guarded("check " + name, 15, one)
        if r is None:
            continue
        journal.put(check=name, regs=kern.registers, **r)
        print("check", name, r, flush=True)
        if r["ok"]:
            good.append((v, kern))
    return good


def sweep(journal, good, shapes, rounds=7):
    for m, n, k in shapes:
        data = sets_for(m, n, k)
        lt = tw.cublaslt_gemm(m, n, k, dtype="bf16", layout="TN", tune=True)
        fns = {"peer": lambda i: lt.run(*data[i])}
        for v, kern in good:
            launches = [prepare_gemm(kern, v, *s) for s in data]
            fns[label(v)] = lambda i, launches=launches: launches[i]()
        flop = 2.0 * m * n * k
        calls = max(len(data), min(20, int(2e-3 / (flop / 7e14))) // len(data) * len(data))
        res = tw.interleave(fns, rotations=len(data), calls_per_graph=calls, rounds=rounds)
        peer = res["peer"]["median_us"]
        rows = sorted(((res[x]["median_us"], x) for x in fns))
        for us, x in rows:
            journal.put(sweep=[m, n, k], variant=x, us=us, lo=res[x]["lo_us"], hi=res[x]["hi_us"], ratio=peer / us)
        print(f"--- {m}x{n}x{k}  peer {peer:.1f} us {flop / peer * 1e-6:.0f} TF/s  algo {getattr(lt, 'algo', '')}")
        for us, x in rows:
            print(f"   {peer / us:.3f}  {us:9.1f} us {flop / us * 1e-6:6.0f} TF/s  {x}", flush=True)
        del data, fns
        torch.cuda.empty_cache()


def main():
    verb = sys.argv[1] if len(sys.argv) > 1 else "check"
    journal = Journal("gemm.jsonl")
    t0 = time.time()
    if verb in ("check", "sweep"):
        good = check(journal, VARIANTS)
        print(f"checked {len(good)} of {len(VARIANTS)} in {time.time() - t0:.1f} s", flush=True)
        if verb == "sweep":
            shapes = [tuple(int(x) for x in s.split("x")) for s in sys.argv[2:]] or SHAPES
            sweep(journal, good, shapes)
    print(f"{time.time() - t0:.1f} s")


if __name__ == "__main__":
    main()
