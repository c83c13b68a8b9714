"""Row softmax and layernorm against the streaming ceiling and torch eager, on one GPU.

    python3 bench/targets/memory.py --out memory.json             check and time the chosen kernels (12 cases)
    python3 bench/targets/memory.py --sweep --out sweep.json      check and time every variant, interleaved, per case
    python3 bench/targets/memory.py --check --out check.json      ragged lengths, odd pitches, -inf, large magnitudes

Each case runs in a forked child with a time limit; a child that dies or hangs loses the variant it was running, is started
again without it, and the case goes on. Rows are appended to OUT.jsonl as they come; OUT holds them all at the end.
A case's figures are interleaved in one run: ours, torch eager, and the streaming copies of the same number of bytes.
"""
import argparse
import json
import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.dirname(HERE))

from memory_variants import (BEST_STREAMS, best_variant, read_variants, ring_variant, rows_variant, stream_variants,  # noqa: E402
                             sweep_variants)

SHAPES = [(16384, 4096), (65536, 1024), (4096, 65536)]
OPS = ["softmax", "layernorm"]
DTYPES = {"bf16": 2, "fp32": 4}
EPS = 1e-5
# Relative Frobenius error against fp64: rounding of the output to its type, and a few ulp of fp32 arithmetic.
TOLERANCE = {2: 3e-3, 4: 5e-6}


# ------------------------------------------------------------------------------------------------ running

def compile_all(tw, variants):
    """Kernels by variant name; a failed compilation has .error text."""
    jobs = [dict(source_path=os.path.join(HERE, v.file), entry=v.entry, defines=v.defines) for v in variants]
    kernels = tw.compile_many(jobs, workers=min(16, os.cpu_count() or 1))
    return {v.name: k for v, k in zip(variants, kernels)}


def prepare(tw, kernel, v, op, sets, rows, n, sms):
    """Callables by input set: launches of the variant."""
    calls = []
    for x, y, w, b in sets:
        if op == "stream":
            args = [x, y, tw.i64(x.numel() * x.element_size())]
            d = v.defines
            tile = d["PIECE"] if d["MODE"] == 2 else d["THREADS"] * d["UNROLL"] * 16
            blocks = x.numel() * x.element_size() // tile
            if v.waves:
                blocks = min(blocks, int(v.resident_blocks(kernel, sms) * v.waves))
            grid = blocks
        else:
            args = [x, y, tw.i32(rows), tw.i32(n)] if op == "softmax" else [x, w, b, y, tw.i32(rows), tw.i32(n), tw.f32(EPS)]
            grid = v.grid(kernel, rows, sms)
        calls.append(kernel.prepare(grid=(grid, 1, 1), block=(v.threads, 1, 1), args=args, smem=v.shared_bytes,
                                    cluster=(v.cluster, 1, 1) if v.cluster > 1 else None))
    return calls


def reference(torch, op, x, w, b):
    x = x.double()
    if op == "softmax":
        return torch.softmax(x, -1)
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), w.double(), b.double(), EPS)


def eager(torch, op, x, w, b):
    if op == "softmax":
        return torch.softmax(x, -1)
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), w, b, EPS)


def error_of(torch, out, op, x, w, b):
    """Relative Frobenius error over all rows, in chunks; NaN where NaN does not belong (or is missing) is an infinite error."""
    num = den = 0.0
    step = max(1, (1 << 25) // x.shape[-1])
    for r in range(0, x.shape[0], step):
        ref = reference(torch, op, x[r:r + step], w, b)
        got = out[r:r + step].double()
        bad = torch.isnan(ref) != torch.isnan(got)
        if bool(bad.any()):
            return float("inf")
        ref, got = torch.nan_to_num(ref), torch.nan_to_num(got)
        num += float(((got - ref) ** 2).sum())
        den += float((ref ** 2).sum())
    return (num / den) ** 0.5 if den else num ** 0.5


def make_input(torch, kind, rows, n, dtype, generator):
    x = torch.randn(rows, n, device="cuda", generator=generator)
    if kind == "large":
        x *= 1e4
    elif kind == "offset":
        x += 300
    elif kind == "masked":  # a causal-like mask, and one row with nothing left
        x.masked_fill_(torch.rand(rows, n, device="cuda", generator=generator) < 0.5, float("-inf"))
        x[rows // 2] = float("-inf")
        x[0, : max(0, n - 1)] = float("-inf")
    return x.to(dtype)


def guarded_output(torch, rows, n, dtype):
    """An output between two guards, all NaN; unwritten elements and writes outside both show."""
    guard = 1024
    whole = torch.full((rows * n + 2 * guard,), float("nan"), device="cuda", dtype=dtype)
    return whole, whole[guard:guard + rows * n].view(rows, n)


def guards_intact(torch, whole, count):
    return bool(torch.isnan(whole[:1024]).all()) and bool(torch.isnan(whole[1024 + count:]).all())


class Report:
    """Rows as they come, one JSON object a line; the last line that a dead child wrote says what it was running."""

    def __init__(self, path):
        self.path = path

    def add(self, row):
        with open(self.path, "a") as f:
            f.write(json.dumps(row) + "\n")

    def rows(self):
        if not os.path.exists(self.path):
            return []
        with open(self.path) as f:
            return [json.loads(line) for line in f if line.strip()]


def in_child(function, limit_s):
    """Runs function() in a forked child; 'ok', 'timeout' or 'died <status>'. CUDA must not be initialised in the parent."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            function()
            status = 0
        except BaseException as e:  # the child reports and ends here, whatever happened
            print(f"child: {type(e).__name__}: {str(e)[:400]}", flush=True)
        finally:
            sys.stdout.flush()
            os._exit(status)
    end = time.time() + limit_s
    while time.time() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return "ok" if status == 0 else f"died {status}"
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "timeout"


def time_case(op, dtype, rows, n, variants, report, rounds, full_check):
    """Checks every variant on poisoned outputs, then times those that are right, torch eager and the copies, interleaved."""
    import harness as tw
    import torch
    elem = DTYPES[dtype]
    case = f"{op}_{dtype}_{rows}x{n}"
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    torch_type = torch.bfloat16 if elem == 2 else torch.float32
    generator = torch.Generator(device="cuda").manual_seed(int.from_bytes(os.urandom(4), "little"))
    bytes_moved = 2 * rows * n * elem
    rotations = max(2, -(-3 * 60_000_000 // (bytes_moved // 2)) + 1)
    w = torch.randn(n, device="cuda", generator=generator).to(torch_type)
    b = torch.randn(n, device="cuda", generator=generator).to(torch_type)
    sets = [(make_input(torch, "normal", rows, n, torch_type, generator), torch.empty(rows, n, device="cuda", dtype=torch_type), w, b)
            for _ in range(rotations)]
    kernels = compile_all(tw, variants)
    calls, info = {}, {}
    edge = min(rows // 2, max(64, (1 << 22) // n))
    for v in variants:
        kernel = kernels[v.name]
        if getattr(kernel, "error", None):
            report.add(dict(case=case, variant=v.name, failed="compile: " + str(kernel.error)[-300:]))
            continue
        report.add(dict(running=v.name, case=case))
        is_stream = v.file == "stream.cu"
        error = None
        x, y = sets[-1][:2]
        y.fill_(float("nan"))
        try:
            prepared = prepare(tw, kernel, v, "stream" if is_stream else op, sets, rows, n, sms)
            prepared[-1]()
        except tw.TilewrightError as e:  # refused at launch: nothing ran
            report.add(dict(case=case, variant=v.name, failed=f"launch: {e}"[:300]))
            continue
        torch.cuda.synchronize()
        if is_stream:
            right = v.defines["MODE"] == 1 or bool(torch.equal(x, y))
        else:
            right = not bool(torch.isnan(y).any())
            if right and full_check:
                error = error_of(torch, y, op, x, w, b)
            elif right:
                error = max(error_of(torch, y[:edge], op, x[:edge], w, b), error_of(torch, y[-edge:], op, x[-edge:], w, b))
            right = right and error <= TOLERANCE[elem]
        if not right:
            report.add(dict(case=case, variant=v.name, failed=f"wrong result, error {error}"))
            continue
        calls[v.name] = lambda i, p=prepared: p[i]()
        info[v.name] = dict(registers=kernel.registers, spill_bytes=kernel.spill_bytes, error=error)
    if op != "stream":
        x, y = sets[0][:2]
        eager_error = max(error_of(torch, eager(torch, op, x[:edge], w, b), op, x[:edge], w, b), 0.0)
        calls["torch eager"] = lambda i: eager(torch, op, sets[i][0], w, b)
        info["torch eager"] = dict(error=eager_error)
    report.add(dict(running="timing", case=case))
    estimate_us = bytes_moved / 4.0e6
    per_graph = rotations * max(1, round(400 / (estimate_us * rotations)))
    if not calls:
        raise RuntimeError("no variant is right")
    baseline = "torch eager" if "torch eager" in calls else next(iter(calls))
    result = tw.interleave(calls, rotations=rotations, calls_per_graph=per_graph, rounds=rounds, baseline=baseline)
    for name in calls:
        moved = bytes_moved // 2 if name.startswith("stream:MODE=1") else bytes_moved
        t = result[name]
        ratio = result["ratios"].get(f"{baseline}/{name}", {}) if baseline == "torch eager" else {}
        report.add(dict(case=case, variant=name, us=t["median_us"], lo_us=t["lo_us"], hi_us=t["hi_us"],
                        gbs=moved / t["median_us"] / 1e3, rotations=rotations, eager_ratio=ratio.get("ratio"),
                        eager_ratio_interval=[ratio["lo"], ratio["hi"]] if ratio else None, **info.get(name, {})))
    report.add(dict(case=case, finished=True))


# ------------------------------------------------------------------------------------------------ correctness

LENGTHS = [1, 3, 8, 31, 64, 127, 128, 257, 777, 1000, 1023, 1024, 1025, 2048, 2049, 4000, 4095, 4096, 4097, 5001, 8192, 12345,
           16384, 20000, 32768, 40001, 65528, 65535, 65536, 65537, 100000, 131072]


def check_plan():
    """(op, dtype, rows, n, input kind, variant): chosen kernels on every length, and the other forms on lengths that bite."""
    plan = []
    for op in OPS:
        kinds = ["normal", "large", "masked"] if op == "softmax" else ["normal", "large", "offset"]
        for dtype, elem in DTYPES.items():
            for n in LENGTHS:
                v = best_variant(op, elem, n)
                if v is not None:
                    plan += [(op, dtype, 1031 if n <= 128 else 37, n, kind, v) for kind in kinds]
            w = {"WEIGHTS": 1} if op == "layernorm" else {}
            s = {"WEIGHTS": 2} if op == "layernorm" else {}
            others = [
                (1000, rows_variant(op, elem, 64, 4, 256, 1, 1, PREFETCH=1, **w)),
                (999, rows_variant(op, elem, 64, 4, 256, 2, 1, PREFETCH=1)),
                (4096 - 8, rows_variant(op, elem, 256, 4, 256, 1, 1, PREFETCH=1, **w)),
                (1000, ring_variant(op, elem, 1, 8, 2, groups=4, kind=1, **s)),
                (1003, ring_variant(op, elem, 1, 16 if elem == 4 else 8, 3, groups=4, kind=2, **({"WEIGHTS": 0} if s else {}))),
                (4000, ring_variant(op, elem, 4, 8, 2, groups=2, kind=1, **s)),
                (3999, ring_variant(op, elem, 8, 4, 2, groups=2, kind=2, **({"WEIGHTS": 0} if s else {}))),
                (60000, ring_variant(op, elem, 16, 4, 2, 8, kind=1, **s)),
                (30000, ring_variant(op, elem, 8, 4, 3, 8, kind=1, **s)),
                (29999, ring_variant(op, elem, 16, 4, 2, 4, kind=2, **({"WEIGHTS": 0} if s else {}))),
                (9, ring_variant(op, elem, 4, 2, 2, 4, kind=2, **({"WEIGHTS": 0} if s else {}))),
            ]
            for n, v in others:
                for rows in (1, 701):
                    plan += [(op, dtype, rows, n, kind, v) for kind in kinds]
    return plan


def run_checks(report, skip):
    import harness as tw
    import torch
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    generator = torch.Generator(device="cuda").manual_seed(int.from_bytes(os.urandom(4), "little"))
    plan = [p for p in check_plan() if p[5].name not in skip]
    unique = {p[5].name + str(p[5].defines["ELEM_BYTES"]): p[5] for p in plan}
    kernels = dict(zip(unique, compile_all_list(tw, list(unique.values()))))
    for op, dtype, rows, n, kind, v in plan:
        elem = DTYPES[dtype]
        kernel = kernels[v.name + str(elem)]
        row = dict(check=f"{op}_{dtype}_{rows}x{n}_{kind}", variant=v.name)
        if getattr(kernel, "error", None):
            report.add(dict(row, ok=False, why="compile: " + str(kernel.error)[-300:]))
            continue
        report.add(dict(running=v.name))
        torch_type = torch.bfloat16 if elem == 2 else torch.float32
        x = make_input(torch, kind, rows, n, torch_type, generator)
        w = torch.randn(n, device="cuda", generator=generator).to(torch_type)
        b = torch.randn(n, device="cuda", generator=generator).to(torch_type)
        whole, y = guarded_output(torch, rows, n, torch_type)
        try:
            prepare(tw, kernel, v, op, [(x, y, w, b)], rows, n, sms)[0]()
        except tw.TilewrightError as e:
            report.add(dict(row, ok=False, why=f"launch: {e}"[:300]))
            continue
        torch.cuda.synchronize()
        error = error_of(torch, y, op, x, w, b)
        eager_error = error_of(torch, eager(torch, op, x, w, b), op, x, w, b)
        # Close to the reference, or no worse than twice torch's own rounding where the input itself is ill-conditioned.
        ok = error <= max(TOLERANCE[elem], 2 * eager_error) and guards_intact(torch, whole, rows * n)
        report.add(dict(row, ok=ok, error=error, eager_error=eager_error, guards=guards_intact(torch, whole, rows * n)))
    report.add(dict(finished=True))


def compile_all_list(tw, variants):
    jobs = [dict(source_path=os.path.join(HERE, v.file), entry=v.entry, defines=v.defines) for v in variants]
    return tw.compile_many(jobs, workers=min(16, os.cpu_count() or 1))


# ------------------------------------------------------------------------------------------------ the three commands

def supervised(make_function, report, limit_s, attempts=4):
    """Runs make_function(skip) in children until one finishes; what a dead one was running is skipped from then on."""
    skip = set()
    for _ in range(attempts):
        before = len(report.rows())
        status = in_child(make_function(skip), limit_s)
        rows = report.rows()[before:]
        if any(r.get("finished") for r in rows):
            return True
        last = next((r["running"] for r in reversed(rows) if "running" in r), None)
        report.add(dict(lost=last, status=status))
        print(f"  lost {last}: {status}", flush=True)
        if last is None or last == "timing" or last in skip:
            return False
        skip.add(last)
    return False


def precompile(variants):
    """In a child, so that the parent never touches the GPU; results lie in the compile cache."""
    def work():
        import harness as tw
        compile_all_list(tw, variants)
    in_child(work, 60)


def cases():
    return [(op, dtype, rows, n) for rows, n in SHAPES for dtype in DTYPES for op in OPS]


def run_cases(report, deadline, sweep, only):
    chosen = [c for c in cases() if not only or only in f"{c[0]}_{c[1]}_{c[2]}x{c[3]}"]
    if sweep:
        per_case = {c: sweep_variants(c[0], DTYPES[c[1]], c[3]) for c in chosen}
        precompile(stream_variants() + read_variants() + [v for vs in per_case.values() for v in vs])
    else:
        per_case = {c: [best_variant(c[0], DTYPES[c[1]], c[3])] for c in chosen}
        precompile(BEST_STREAMS + [v for vs in per_case.values() for v in vs])
    if sweep:
        for rows, n in ((16384, 4096), (4096, 65536)):
            if time.time() > deadline:
                break
            vs = stream_variants() + read_variants()
            supervised(lambda skip: lambda: time_case("stream", "bf16", rows, n, [v for v in vs if v.name not in skip], report, 12, False),
                       report, 20)
    for c in chosen:
        if time.time() > deadline:
            print("out of time before", c, flush=True)
            break
        vs = per_case[c] + BEST_STREAMS
        supervised(lambda skip: lambda: time_case(*c, [v for v in vs if v.name not in skip], report, 10 if sweep else 40, not sweep),
                   report, 25)


def summary(rows):
    """Per case: the best of ours beside eager and the best copy of the same bytes and of the run."""
    timed = [r for r in rows if "us" in r]
    best_copy = max([r["gbs"] for r in timed if r["variant"].startswith("stream:MODE=0") or r["variant"].startswith("stream:MODE=2")],
                    default=0.0)
    best_read = max([r["gbs"] for r in timed if r["variant"].startswith("stream:MODE=1")], default=0.0)
    out = []
    for c in dict.fromkeys(r["case"] for r in timed):
        mine = [r for r in timed if r["case"] == c]
        ours = [r for r in mine if not r["variant"].startswith("stream") and r["variant"] != "torch eager"]
        copy = [r for r in mine if r["variant"].startswith("stream:MODE=0") or r["variant"].startswith("stream:MODE=2")]
        peer = [r for r in mine if r["variant"] == "torch eager"]
        if not ours or not peer:
            continue
        o, p = min(ours, key=lambda r: r["us"]), peer[0]
        same = max((r["gbs"] for r in copy), default=0.0)
        out.append(dict(case=c, family="memory", ours_us=o["us"], peer="torch eager", peer_us=p["us"], ratio=o["eager_ratio"],
                        interval=o["eager_ratio_interval"],
                        l2=f"cold: {o['rotations']} input and output sets rotate", gbs=o["gbs"], copy_gbs_same_bytes=same,
                        best_copy_gbs=best_copy, of_best_copy=o["gbs"] / best_copy if best_copy else None,
                        of_copy_same_bytes=o["gbs"] / same if same else None, error=o.get("error"), peer_error=p.get("error"),
                        registers=o.get("registers"), spill_bytes=o.get("spill_bytes"), notes=o["variant"]))
    return out, best_copy, best_read


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="memory.json")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--budget", type=float, default=300, help="seconds; no case is started after it")
    options = parser.parse_args()
    deadline = time.time() + options.budget
    report = Report(options.out + "l")
    if os.path.exists(report.path):
        os.remove(report.path)
    if options.check:
        supervised(lambda skip: lambda: run_checks(report, skip), report, 60)
        rows = [r for r in report.rows() if "check" in r]
        bad = [r for r in rows if not r["ok"]]
        print(f"checks: {len(rows) - len(bad)} right, {len(bad)} wrong")
        for r in bad[:20]:
            print("  WRONG", r)
        json.dump(dict(checks=rows), open(options.out, "w"))
        return 1 if bad or not rows else 0
    import torch  # before the forks; it initialises no device
    run_cases(report, deadline, options.sweep, options.only)
    rows, best_copy, best_read = summary(report.rows())
    json.dump(dict(cases=rows, versions=dict(torch=torch.__version__, cuda=torch.version.cuda), best_copy_gbs=best_copy,
                   best_read_gbs=best_read, command=" ".join(sys.argv)), open(options.out, "w"), indent=1)
    print(f"best copy {best_copy:.0f} GB/s, best read {best_read:.0f} GB/s")
    for r in rows:
        print(f"{r['case']:28s} {r['ours_us']:8.1f} us {r['gbs']:6.0f} GB/s  {r['of_best_copy']:.3f} of best copy "
              f"({r['of_copy_same_bytes']:.3f} same bytes)  x{r['ratio']:.2f} eager  err {r['error']:.1e}  {r['notes']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
