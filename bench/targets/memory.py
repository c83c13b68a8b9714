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
import math
import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.dirname(HERE))

from memory_ops import (ROW_WISE, TOLERANCE, apply, bytes_moved, error_of, guarded_output, guards_intact,  # noqa: E402
                        make_input, output_shape, prepare)
from memory_variants import (BEST_STREAMS, best_variant, read_variants, ring_variant, rows_variant, stream_variants,  # noqa: E402
                             sweep_variants)

SHAPES = [(16384, 4096), (65536, 1024), (4096, 65536)]
OPS = ["softmax", "layernorm"]
MORE_OPS = ["cumsum", "transpose", "colsum"]
RAGGED = [("softmax", "bf16", 16384, 4095), ("layernorm", "bf16", 16384, 4095), ("softmax", "fp32", 65536, 1023),
          ("softmax", "bf16", 16384, 5000), ("layernorm", "fp32", 4096, 65535)]
DTYPES = {"bf16": 2, "fp32": 4}


# ------------------------------------------------------------------------------------------------ running

def compile_all(tw, variants):
    """One kernel per variant; a failed compilation has .error text. Variants that differ only in their launch share one."""
    keys = [(v.file, tuple(sorted(v.defines.items()))) for v in variants]
    unique = dict(zip(keys, variants))
    # NVRTC's own cache answers for texts that expand to the same code, without ptxas's report, which holds the registers.
    jobs = [dict(source_path=os.path.join(HERE, v.file), entry=v.entry, defines=v.defines, options=["--no-cache"])
            for v in unique.values()]
    kernels = dict(zip(unique, tw.compile_many(jobs, workers=min(16, os.cpu_count() or 1))))
    return [kernels[k] for k in keys]


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


def in_child(function, stall_s, report=None, deadline=None):
    """Runs function() in a forked child; 'ok', 'stalled' (no new row for stall_s), 'out of time' or 'died <status>'.

    CUDA must not be initialised in the parent.
    """
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
    size, since = -1, time.time()
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return "ok" if status == 0 else f"died {status}"
        now = os.path.getsize(report.path) if report and os.path.exists(report.path) else -1
        if now != size:
            size, since = now, time.time()
        why = "stalled" if time.time() > since + stall_s else "out of time" if deadline and time.time() > deadline else None
        if why:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return why
        time.sleep(0.02)


def time_case(op, dtype, rows, n, variants, report, rounds, full_check):
    """Checks every variant on poisoned outputs, then times those that are right, torch eager and the copies, interleaved."""
    import harness as tw
    import torch
    elem = DTYPES[dtype]
    case = f"{op}_{dtype}_{rows}x{n}"
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    torch_type = torch.bfloat16 if elem == 2 else torch.float32
    generator = torch.Generator(device="cuda").manual_seed(int.from_bytes(os.urandom(4), "little"))
    moved = bytes_moved(op, rows, n, elem)
    rotations = max(2, -(-3 * 60_000_000 // (rows * n * elem)) + 1)
    w = torch.randn(n, device="cuda", generator=generator).to(torch_type)
    b = torch.randn(n, device="cuda", generator=generator).to(torch_type)
    shape = output_shape(op, rows, n)
    room = max(math.prod(shape), 1 << 20)  # the read ceiling leaves a word per block
    sets = [(make_input(torch, "normal", rows, n, torch_type, generator),
             torch.empty(room, device="cuda", dtype=torch_type)[:math.prod(shape)].view(shape), w, b) for _ in range(rotations)]
    kernels = {v.name: k for v, k in zip(variants, compile_all(tw, variants))}
    calls, info = {}, {}
    edge = min(rows // 2, max(64, (1 << 22) // n))
    x = sets[0][0]
    if op == "stream":
        eager_error = 0.0
    elif op in ROW_WISE:
        eager_error = error_of(torch, apply(torch, op, x[:edge], w, b), op, x[:edge], w, b)
    else:
        eager_error = error_of(torch, apply(torch, op, x, w, b), op, x, w, b)
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
            prepared = prepare(tw, torch, kernel, v, "stream" if is_stream else op, sets, rows, n, sms)
            prepared[-1]()
        except tw.TilewrightError as e:  # refused at launch: nothing ran
            report.add(dict(case=case, variant=v.name, failed=f"launch: {e}"[:300]))
            continue
        torch.cuda.synchronize()
        if is_stream:
            right = v.defines["MODE"] == 1 or bool(torch.equal(x.view(-1), y.view(-1)))
        else:
            right = not bool(torch.isnan(y).any())
            if right and (full_check or op not in ROW_WISE):
                error = error_of(torch, y, op, x, w, b)
            elif right:
                error = max(error_of(torch, y[:edge], op, x[:edge], w, b), error_of(torch, y[-edge:], op, x[-edge:], w, b))
            right = right and error <= max(TOLERANCE[elem], 2 * eager_error)
        if not right:
            report.add(dict(case=case, variant=v.name, failed=f"wrong result, error {error}"))
            continue
        calls[v.name] = lambda i, p=prepared: p[i]()
        info[v.name] = dict(registers=kernel.registers, spill_bytes=kernel.spill_bytes, error=error)
    if op != "stream":
        calls["torch eager"] = lambda i: apply(torch, op, sets[i][0], w, b)
        info["torch eager"] = dict(error=eager_error)
    report.add(dict(running="timing " + case, case=case))
    estimate_us = moved / 4.0e6
    per_graph = rotations * max(1, round(400 / (estimate_us * rotations)))
    if not calls:
        raise RuntimeError("no variant is right")
    baseline = "torch eager" if "torch eager" in calls else next(iter(calls))
    result = tw.interleave(calls, rotations=rotations, calls_per_graph=per_graph, rounds=rounds, baseline=baseline)
    for name in calls:
        mine = rows * n * elem if name.startswith("stream:MODE=1") else 2 * rows * n * elem if name.startswith("stream") else moved
        t = result[name]
        ratio = result["ratios"].get(f"{baseline}/{name}", {}) if baseline == "torch eager" else {}
        report.add(dict(case=case, variant=name, us=t["median_us"], lo_us=t["lo_us"], hi_us=t["hi_us"],
                        gbs=mine / t["median_us"] / 1e3, rotations=rotations, eager_ratio=ratio.get("ratio"),
                        eager_ratio_interval=[ratio["lo"], ratio["hi"]] if ratio else None, **info.get(name, {})))
    report.add(dict(case=case, finished=True))
    del sets, calls
    torch.cuda.empty_cache()


# ------------------------------------------------------------------------------------------------ correctness

LENGTHS = [1, 3, 8, 31, 64, 127, 128, 257, 777, 1000, 1023, 1024, 1025, 2048, 2049, 4000, 4095, 4096, 4097, 5001, 8192, 12345,
           16384, 20000, 32768, 40001, 65528, 65535, 65536, 65537, 100000, 131072]


def check_plan():
    """(op, dtype, rows, n, input kind, variant): chosen kernels on every length, and the other forms on lengths that bite."""
    plan = []
    for dtype, elem in DTYPES.items():
        for n in LENGTHS:
            v = best_variant("cumsum", elem, n)
            if v is not None:
                plan.append(("cumsum", dtype, 1031 if n <= 128 else 37, n, "normal", v))
        for rows, n in [(8, 8), (64, 64), (72, 136), (1000, 40), (2048, 4096), (8, 1024)]:
            plan.append(("transpose", dtype, rows, n, "normal", best_variant("transpose", elem, n)))
        for rows, n in [(1, 8), (3, 8), (100, 1000), (4097, 512), (777, 4104)]:
            plan.append(("colsum", dtype, rows, n, "normal", best_variant("colsum", elem, n)))
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
    kernels = dict(zip(unique, compile_all(tw, list(unique.values()))))
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
        whole, y = guarded_output(torch, output_shape(op, rows, n), torch_type)
        try:
            prepare(tw, torch, kernel, v, op, [(x, y, w, b)], rows, n, sms)[0]()
        except tw.TilewrightError as e:
            report.add(dict(row, ok=False, why=f"launch: {e}"[:300]))
            continue
        torch.cuda.synchronize()
        error = error_of(torch, y, op, x, w, b)
        eager_error = error_of(torch, apply(torch, op, x, w, b), op, x, w, b)
        # Close to the reference, or no worse than twice torch's own rounding where the input itself is ill-conditioned.
        ok = error <= max(TOLERANCE[elem], 2 * eager_error) and guards_intact(torch, whole, y.numel())
        report.add(dict(row, ok=ok, error=error, eager_error=eager_error, guards=guards_intact(torch, whole, y.numel())))
    report.add(dict(finished=True))


# ------------------------------------------------------------------------------------------------ the three commands

def supervised(work, report, deadline, stall_s=25, attempts=8):
    """Runs work(skip) in children until one ends well; what a dead one was running (a variant, a case) is skipped from then on."""
    skip = set()
    for _ in range(attempts):
        before = len(report.rows())
        status = in_child(lambda: work(skip), stall_s, report, deadline)
        if status in ("ok", "out of time"):
            return
        last = next((r["running"] for r in reversed(report.rows()[before:]) if "running" in r), None)
        report.add(dict(lost=last, status=status))
        print(f"  lost {last}: {status}", flush=True)
        if last is None or last in skip:
            return
        skip.add(last)


def precompile(variants):
    """In a child, so that the parent never touches the GPU; results lie in the compile cache."""
    def work():
        import harness as tw
        compile_all(tw, variants)
    in_child(work, 90)


def cases():
    out = [(op, dtype, rows, n) for rows, n in SHAPES for dtype in DTYPES for op in OPS]
    out += [(op, dtype, 16384, 4096) for op in MORE_OPS for dtype in DTYPES] + [("cumsum", "fp32", 65536, 1024)]
    return out + RAGGED


def case_name(c):
    return f"{c[0]}_{c[1]}_{c[2]}x{c[3]}"


def parse_case(name):
    op, dtype, shape = name.split("_")
    rows, n = shape.split("x")
    return op, dtype, int(rows), int(n)


def run_cases(report, deadline, sweep, chosen):
    if sweep:
        per_case = {c: sweep_variants(c[0], DTYPES[c[1]], c[3]) for c in chosen}
        precompile(stream_variants() + read_variants() + [v for vs in per_case.values() for v in vs])
    else:
        per_case = {c: [best_variant(c[0], DTYPES[c[1]], c[3])] for c in chosen}
        precompile(BEST_STREAMS + [v for vs in per_case.values() for v in vs])
    ceilings = [("stream", "bf16", rows, n) for rows, n in ((16384, 4096), (4096, 65536))] if sweep else []

    def work(skip):
        finished = {r["case"] for r in report.rows() if r.get("finished")}
        for c in ceilings + chosen:
            if case_name(c) in finished or "timing " + case_name(c) in skip:
                continue
            if time.time() > deadline:
                print("out of time before", case_name(c), flush=True)
                return
            vs = stream_variants() + read_variants() if c in ceilings else per_case[c] + [
                v for v in BEST_STREAMS if c[0] != "colsum" or v.defines["MODE"] == 1]
            time_case(*c, [v for v in vs if v.name not in skip], report, 10 if sweep else 40, not sweep)
    supervised(work, report, deadline + 20)


def is_copy(row):
    return row["variant"].startswith(("stream:MODE=0", "stream:MODE=2"))


def is_read(row):
    return row["variant"].startswith("stream:MODE=1")


def summary(rows):
    """Per case: the best of ours beside eager and the ceiling (copies; reads for a reduction), of the run and of the same bytes."""
    timed = [r for r in rows if "us" in r]
    best = {kind: max([r["gbs"] for r in timed if kind(r)], default=0.0) for kind in (is_copy, is_read)}
    out = []
    for c in dict.fromkeys(r["case"] for r in timed):
        mine = [r for r in timed if r["case"] == c]
        ours = [r for r in mine if not r["variant"].startswith("stream") and r["variant"] != "torch eager"]
        peer = [r for r in mine if r["variant"] == "torch eager"]
        if not ours or not peer:
            continue
        kind = is_read if c.startswith("colsum") else is_copy
        o, p = min(ours, key=lambda r: r["us"]), peer[0]
        same = max((r["gbs"] for r in mine if kind(r)), default=0.0)
        out.append(dict(case=c, family="memory", ours_us=o["us"], peer="torch eager", peer_us=p["us"], ratio=o["eager_ratio"],
                        interval=o["eager_ratio_interval"], l2=f"cold: {o['rotations']} input and output sets rotate", gbs=o["gbs"],
                        of_best_stream=o["gbs"] / best[kind] if best[kind] else None,
                        of_stream_same_bytes=o["gbs"] / same if same else None, stream_same_bytes_gbs=same,
                        stream="read" if kind is is_read else "copy", error=o.get("error"), peer_error=p.get("error"),
                        registers=o.get("registers"), spill_bytes=o.get("spill_bytes"), notes=o["variant"]))
    return out, best[is_copy], best[is_read]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="memory.json")
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--case", action="append", default=[], help="a case by name, such as softmax_bf16_8192x16384; may be repeated")
    parser.add_argument("--budget", type=float, default=300, help="seconds; no case is started after it")
    options = parser.parse_args()
    deadline = time.time() + options.budget
    report = Report(options.out + "l")
    if os.path.exists(report.path):
        os.remove(report.path)
    if options.check:
        supervised(lambda skip: run_checks(report, skip), report, deadline)
        rows = [r for r in report.rows() if "check" in r]
        bad = [r for r in rows if not r["ok"]]
        print(f"checks: {len(rows) - len(bad)} right, {len(bad)} wrong")
        for r in bad[:20]:
            print("  WRONG", r)
        json.dump(dict(checks=rows), open(options.out, "w"))
        return 1 if bad or not rows else 0
    import torch  # before the forks; it initialises no device
    chosen = [parse_case(c) for c in options.case] or [c for c in cases() if options.only in case_name(c)]
    run_cases(report, deadline, options.sweep, chosen)
    rows, best_copy, best_read = summary(report.rows())
    json.dump(dict(cases=rows, versions=dict(torch=torch.__version__, cuda=torch.version.cuda), best_copy_gbs=best_copy,
                   best_read_gbs=best_read, command=" ".join(sys.argv)), open(options.out, "w"), indent=1)
    print(f"best copy {best_copy:.0f} GB/s, best read {best_read:.0f} GB/s")
    for r in rows:
        print(f"{r['case']:26s} {r['ours_us']:7.1f} us {r['gbs']:5.0f} GB/s {r['of_best_stream'] or 0:.3f} of best {r['stream']} "
              f"({r['of_stream_same_bytes'] or 0:.3f} same bytes) x{r['ratio']:.2f} eager err {r['error']:.1e} {r['notes']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
