#!/usr/bin/env python3
"""GEMM cases against autotuned cuBLASLt: every candidate is checked, then timed interleaved with the peer.

    gemm_suite.py PLANS OUT.jsonl [--cases REGEX] [--candidates REGEX] [--rounds N]
    gemm_suite.py PLANS OUT.jsonl --fused [--compile]    fused epilogues against the bare GEMM (and torch.compile)
    gemm_suite.py --summary OUT.jsonl RESULT.json        the best candidate per case, for bench/results/h200/gemm.json
    gemm_suite.py PLANS OUT.jsonl --tuned                the best constants per kernel and case, as kernels/*.tuned.json

PLANS is a folder with plans of `tilewright emit --to plan` and candidates.json: {name: {"form": "TN", "dtype": "bf16", "kind": "plain" |
"skinny" | "split" | "misaligned", "plan": file, "most_rows": M or null, "least_k": K or 0}}. Forms as in harness.cublaslt_gemm: A then
B; A: T is A[m, k], N is A[k, m]; B: N is B[n, k], T is B[k, n]. What is known is appended to OUT.jsonl at once; a candidate that hangs
or faults ends the process, and running the command again goes on after it.
"""
import argparse
import json
import math
import os
import re
import statistics
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

L2_BYTES = 50 << 20

# name: (M, N, K, form, dtype)
CASES = {
    **{f"TN {n}^3": (n, n, n, "TN", "bf16") for n in (1024, 2048, 4096, 8192, 16384)},
    "TN 8192x28672x8192": (8192, 28672, 8192, "TN", "bf16"),
    "TN 8192x8192x28672": (8192, 8192, 28672, "TN", "bf16"),
    "TN 4096x14336x4096": (4096, 14336, 4096, "TN", "bf16"),
    **{f"TN M={m} N=K=8192": (m, 8192, 8192, "TN", "bf16") for m in (1, 8, 16, 64, 128)},
    "TN 8192x8192x512": (8192, 8192, 512, "TN", "bf16"),
    "TN 512x512x65536": (512, 512, 65536, "TN", "bf16"),
    **{f"{f} 4096^3": (4096, 4096, 4096, f, "bf16") for f in ("NN", "NT", "TT")},
    **{f"{f} 8192x28672x8192": (8192, 28672, 8192, f, "bf16") for f in ("NN", "NT", "TT")},
    "TN 4096^3 f16": (4096, 4096, 4096, "TN", "f16"),
    "TN 4095x4097x4104": (4095, 4097, 4104, "TN", "bf16"),
    "TN 1000x3000x777": (1000, 3000, 777, "TN", "bf16"),
}
# What was found where the peer is faster, or a fused epilogue costs more than 3 %.
REASONS = {
    "TN 8192^3": "2 to 3 % under the peer in two of three runs, level in one; both sit at the power limit; its 168-wide tiles fill 23.8 of 24 waves, 128x256 tiles 15.5 of 16",
    "TN 8192x28672x8192": "as 8192^3",
    "NN 8192x28672x8192": "as 8192^3",
    "TN 4096x14336x4096": "1792 tiles are 13.6 waves of 14; clusters with multicast and 192-wide tiles were slower here",
    "TN M=128 N=K=8192": "a block reads twice as many bytes of A as of B; sharing A between two blocks by multicast gives 0.94",
    "TN 8192x8192x512": "8 k blocks a tile: draining the last wgmmas and packing the tile is exposed; the stores are hidden (0.84 before); hints for C and other groups change nothing",
    "TN 512x512x65536": "8 splits and a second launch that adds them; the peer does the same",
    "TN 4096^3 f16": "level within its interval",
    "gemm_residual": "the residual comes by 4-byte loads before the product, and no registers are left to defer the stores",
    "gemm_bias_gelu": "the activation (one special-function and about 8 other instructions an element) runs between two products",
    "gemm_bias_silu": "as gelu",
}
CHECKS = {
    "plain": ((128, 256, 64), (8, 8, 8), (136, 264, 72), (200, 328, 1000), (2000, 2008, 128), (1000, 3000, 776)),
    "skinny": ((1, 8, 8), (3, 136, 264), (5, 1000, 776), (8, 512, 4096)),
    "split": ((8, 8, 8), (200, 328, 1000), (512, 512, 8192), (136, 264, 3000)),
    "misaligned": ((1, 1, 1), (65, 67, 70), (129, 257, 131), (1000, 3000, 777), (513, 1001, 4104)),
}


class Journal:
    """One JSON line per fact; remembers what was begun, so that a rerun skips what ended the process."""

    def __init__(self, path):
        self.path, self.begun, self.checked = path, set(), {}
        if os.path.exists(path):
            for line in open(path):
                row = json.loads(line)
                if "begin" in row:
                    self.begun.add(row["begin"])
                if "check" in row:
                    self.checked[row["check"]] = row["ok"]

    def put(self, **row):
        with open(self.path, "a") as f:
            f.write(json.dumps(row) + "\n")

    def guarded(self, key, seconds, fn):
        import torch

        if key in self.begun:
            return None
        self.put(begin=key)

        def hung():
            self.put(failed=key, error="hang")
            print(key, "HANG", flush=True)
            os._exit(3)

        timer = threading.Timer(seconds, hung)
        timer.daemon = True
        timer.start()
        try:
            result = fn()
            torch.cuda.synchronize()
            return result
        except Exception as e:  # a fault poisons the context: leave, the rerun goes on
            self.put(failed=key, error=f"{type(e).__name__}: {e}"[:400])
            print(key, "FAILED", str(e)[:400], flush=True)
            os._exit(4)
        finally:
            timer.cancel()


def operands(m, n, k, form, dtype, seed):
    import torch

    g = torch.Generator(device="cuda").manual_seed(seed)
    t = {"bf16": torch.bfloat16, "f16": torch.float16}[dtype]
    a = torch.randn(*((m, k) if form[0] == "T" else (k, m)), device="cuda", generator=g).to(t)
    b = torch.randn(*((n, k) if form[1] == "N" else (k, n)), device="cuda", generator=g).to(t)
    return a, b, torch.full((m, n), float("nan"), device="cuda", dtype=t)


def reference(a, b, form):
    return (a if form[0] == "T" else a.t()).float() @ (b.t() if form[1] == "N" else b).float()


class Candidate:
    def __init__(self, name, spec, module):
        self.name, self.spec, self.module = name, spec, module
        self.kind, self.form, self.dtype = spec.get("kind", "plain"), spec.get("form", "TN"), spec.get("dtype", "bf16")

    def serves(self, m, n, k, form, dtype):
        if form != self.form or dtype != self.dtype:
            return False
        if self.kind != "misaligned" and (k % 8 or n % 8 or (form[0] == "N" and m % 8)):
            return False
        most, least = self.spec.get("most_rows"), self.spec.get("least_k", 0)
        return (most is None or m <= most) and k > least

    def prepare(self, a, b, c):
        import torch

        if self.kind == "split":
            splits = self.spec["splits"]
            p = torch.empty(splits, c.shape[0], c.shape[1], device="cuda", dtype=torch.float32)
            steps = [self.module["split_products"].prepare(A=a, B=b, P=p), self.module["add_splits"].prepare(P=p, C=c)]
        elif self.kind == "misaligned":
            padded = []
            steps = []
            for x in (a, b):
                pitch = -(-x.shape[1] // 64) * 64
                y = torch.empty(x.shape[0], pitch, device="cuda", dtype=x.dtype)[:, :x.shape[1]]
                padded.append(y)
                steps.append(self.module["pad_rows"].prepare(X=x, Y=y))
            steps.append(self.module["gemm_padded"].prepare(A=padded[0], B=padded[1], C=c))
        else:
            steps = [next(iter(self.module.values())).prepare(A=a, B=b, C=c)]
        return lambda: [s() for s in steps]


def check(journal, candidate):
    """Poisoned output, ragged shapes, twice each."""
    import torch

    def one():
        worst = 0.0
        for i, (m, n, k) in enumerate(CHECKS[candidate.kind]):
            if not candidate.serves(m, n, k, candidate.form, candidate.dtype):
                continue
            a, b, c = operands(m, n, k, candidate.form, candidate.dtype, 7 * i + 1)
            run = candidate.prepare(a, b, c)
            want = reference(a, b, candidate.form)
            for _ in range(2):
                c.fill_(float("nan"))
                run()
                torch.cuda.synchronize()
                e = float((c.float() - want).norm() / want.norm())
                if not e <= 6e-3:
                    return dict(ok=False, shape=[m, n, k], error=e)
                worst = max(worst, e)
        return dict(ok=True, error=worst)

    r = journal.guarded("check " + candidate.name, 10, one)
    if r is not None:
        journal.put(check=candidate.name, **r)
        journal.checked[candidate.name] = r["ok"]
        if not r["ok"]:
            print("WRONG", candidate.name, r, flush=True)
    return journal.checked.get(candidate.name, False)


def time_case(journal, case, candidates, rounds, heuristics):
    import torch

    import harness as tw

    m, n, k, form, dtype = CASES[case]
    one = 2 * (m * k + n * k + m * n)
    data = [operands(m, n, k, form, dtype, 100 + i) for i in range(max(2, min(24, math.ceil(4 * L2_BYTES / one))))]
    begun = time.time()
    try:
        lt = tw.cublaslt_gemm(m, n, k, dtype=dtype, layout=form, tune=True, heuristics=heuristics)
        lt.run(*data[0])
        torch.cuda.synchronize()
        peer, algorithm = "cuBLASLt, autotuned", lt.algo
        calls = {"peer": lambda i: lt.run(*data[i])}
    except tw.TilewrightError as e:
        peer, algorithm = "torch.mm", str(e)[:200]
        calls = {"peer": lambda i: torch.mm(data[i][0] if form[0] == "T" else data[i][0].t(), data[i][1].t() if form[1] == "N" else data[i][1], out=data[i][2])}
    tuned = time.time() - begun
    want = reference(*data[0][:2], form)
    errors = {}
    for c in candidates:
        if not c.serves(m, n, k, form, dtype):
            continue
        runs = [c.prepare(*d) for d in data]
        data[0][2].fill_(float("nan"))
        runs[0]()
        torch.cuda.synchronize()
        errors[c.name] = float((data[0][2].float() - want).norm() / want.norm())
        if not errors[c.name] <= 6e-3:
            journal.put(wrong=c.name, case=case, error=errors[c.name])
            print("WRONG", case, c.name, errors[c.name], flush=True)
            continue
        calls[c.name] = lambda i, runs=runs: runs[i]()
    del want
    r = tw.interleave(calls, rotations=len(data), rounds=rounds, warmup_ms=25.0, target_graph_us=800.0, baseline="peer")
    rows = {}
    for name in calls:
        ratio = r["ratios"].get(f"peer/{name}", dict(ratio=1.0, lo=1.0, hi=1.0))
        rows[name] = dict(us=round(r[name]["median_us"], 3), ratio=round(ratio["ratio"], 4), interval=[round(ratio["lo"], 4), round(ratio["hi"], 4)])
        if name in errors:
            rows[name]["error"] = errors[name]
    journal.put(case=case, peer=peer, algorithm=algorithm, rows=rows, operand_sets=len(data), bytes_of_a_set=one, tune_s=round(tuned, 2))
    flop = 2e-6 * m * n * k
    print(f"--- {case}: {peer} {rows['peer']['us']} us {flop / rows['peer']['us']:.0f} TF/s (tuned in {tuned:.1f} s)")
    for name, row in sorted(rows.items(), key=lambda x: x[1]["us"])[:6]:
        print(f"    {row['ratio']:.3f} {row['us']:10.2f} us {flop / row['us']:6.0f} TF/s {name}", flush=True)


FUSED_SHAPES = ((4096, 4096, 4096), (8192, 8192, 8192))


def fused_calls(name, m, n, k, i):
    """(arguments by name, fp32 reference, torch function) of one fused kernel; the last word of `name` before a dash says which."""
    import torch

    g = torch.Generator(device="cuda").manual_seed(50 + i)
    r = lambda *s: torch.randn(*s, device="cuda", generator=g)  # noqa: E731
    a, b, c = r(m, k).bfloat16(), r(n, k).bfloat16() / math.sqrt(k), torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    act = {"gelu": lambda x: torch.nn.functional.gelu(x, approximate="tanh"), "silu": torch.nn.functional.silu, "relu": torch.relu}
    product = lambda: a.float() @ b.float().t()  # noqa: E731
    args = dict(A=a, B=b, C=c)
    if name in act:
        args["bias"] = r(n).bfloat16()
        return args, lambda: act[name](product() + args["bias"].float()), lambda f=act[name]: f(torch.nn.functional.linear(a, b, args["bias"]))
    if name == "bias":
        args["bias"] = r(n).bfloat16()
        return args, lambda: product() + args["bias"].float(), lambda: torch.nn.functional.linear(a, b, args["bias"])
    if name == "residual":
        args["R"] = r(m, n).bfloat16()
        return args, lambda: product() + args["R"].float(), lambda: torch.mm(a, b.t()) + args["R"]
    if name == "scaled":
        args["rows"], args["columns"] = r(m), r(n)
        return args, lambda: product() * args["rows"][:, None] * args["columns"][None, :], lambda: torch.mm(a, b.t()) * args["rows"][:, None].bfloat16() * args["columns"].bfloat16()
    if name == "gated":
        args["G"] = r(n, k).bfloat16() / math.sqrt(k)
        return (args, lambda: torch.nn.functional.silu(a.float() @ args["G"].float().t()) * product(),
                lambda: torch.nn.functional.silu(torch.mm(a, args["G"].t())) * torch.mm(a, b.t()))
    return args, product, lambda: torch.mm(a, b.t())


def time_fused(journal, shape, modules, compiled):
    import torch

    import harness as tw

    m, n, k = shape
    sets, calls, errors = 2, {}, {}
    for label, (epilogue, variants) in modules.items():
        runs = []
        for i in range(sets):
            args, want, eager = fused_calls(epilogue, m, n, k, i)
            runs.append(variants.prepare(**args))
            if i == 0:
                args["C"].fill_(float("nan"))
                runs[0]()
                torch.cuda.synchronize()
                ref = want()
                errors[label] = float((args["C"].float() - ref).norm() / ref.norm())
        if not errors[label] <= 6e-3:
            print("WRONG", shape, label, errors[label], flush=True)
            journal.put(wrong=label, shape=shape, error=errors[label])
            continue
        calls[label] = lambda i, runs=runs: runs[i]()
    eager = {e: [fused_calls(e, m, n, k, i)[2] for i in range(sets)] for e in ("gelu", "gated", "residual", "bare")}
    for e, fns in eager.items():
        calls["torch " + e] = lambda i, fns=fns: fns[i]()
    if compiled:
        f = torch.compile(lambda x, w, b: torch.nn.functional.gelu(torch.nn.functional.linear(x, w, b), approximate="tanh"))
        data = [fused_calls("gelu", m, n, k, i)[0] for i in range(sets)]
        for d in data:
            f(d["A"], d["B"], d["bias"])
        calls["torch.compile gelu"] = lambda i: f(data[i]["A"], data[i]["B"], data[i]["bias"])
    r = tw.interleave(calls, rotations=sets, rounds=9, warmup_ms=25.0, target_graph_us=800.0)
    rows = {c: dict(us=round(r[c]["median_us"], 3), lo=round(r[c]["lo_us"], 3), hi=round(r[c]["hi_us"], 3), error=errors.get(c)) for c in calls}
    journal.put(fused=list(shape), rows=rows)
    print(f"--- fused {m}x{n}x{k}")
    for c, row in sorted(rows.items(), key=lambda x: x[1]["us"]):
        print(f"    {row['us']:10.2f} us {2e-6 * m * n * k / row['us']:6.0f} TF/s {c}", flush=True)


def fused(journal, args, plans):
    import torch

    specs = json.load(open(os.path.join(args.plans, "fused.json")))
    modules = {}
    for label, spec in specs.items():
        modules[label] = (spec["epilogue"], plans.load(os.path.join(args.plans, spec["plan"]))[spec["kernel"]])
    for shape in FUSED_SHAPES:
        journal.guarded(f"fused {shape}", 120, lambda: time_fused(journal, shape, modules, args.compile))
        torch.cuda.empty_cache()


def fused_rows(row):
    """A fused epilogue against the fastest bare product of the same run (a gated pair: against two of them)."""
    rows, shape = row["rows"], "x".join(map(str, row["fused"]))
    bare = min(r["us"] for n, r in rows.items() if n.startswith("bare"))
    out = []
    for name, r in rows.items():
        if name.startswith(("bare", "torch")):
            continue
        factor = 2 if name.endswith("gated") else 1
        torch_names = [t for t in rows if t.startswith("torch") and t.split()[-1] == name.split("_")[-1]]
        out.append(dict(case=f"{name} {shape}", ours_us=r["us"], peer="our bare GEMM" if factor == 1 else "two of our bare GEMMs", peer_us=round(factor * bare, 3), ratio=round(factor * bare / r["us"], 4),
                        interval=[round(factor * bare / r["hi"], 4), round(factor * bare / r["lo"], 4)], l2="2 operand sets in turn",
                        notes="; ".join([f"relative error {r['error']:.1e}"] + [f"{t}: {rows[t]['us']} us, ratio {rows[t]['us'] / r['us']:.3f}" for t in torch_names])))
    return out


def summary(journal, out):
    best, versions = {}, {}
    for line in open(journal):
        row = json.loads(line)
        if "versions" in row:
            versions = row["versions"]
        if "case" not in row or "rows" not in row:
            continue
        ours = {n: r for n, r in row["rows"].items() if n != "peer"}
        if not ours:
            continue
        name = min(ours, key=lambda n: ours[n]["us"])
        r = ours[name]
        best[row["case"]] = dict(case=row["case"], ours_us=r["us"], peer=row["peer"], peer_us=row["rows"]["peer"]["us"], ratio=r["ratio"], interval=r["interval"],
                                 l2=f"{row['operand_sets']} operand sets of {row['bytes_of_a_set'] >> 20} MiB in turn", notes=f"{name}; relative error {r['error']:.1e}; peer: {row['algorithm']}",
                                 others={n: x["ratio"] for n, x in ours.items() if n != name})
    cases = [best.get(c, dict(case=c, notes="not measured")) for c in CASES]
    named = len(cases)
    ratios = [c["ratio"] for c in cases if "ratio" in c]
    for row in map(json.loads, open(journal)):
        if "fused" in row:
            cases += fused_rows(row)
    for c in cases:
        reason = REASONS.get(c["case"]) or REASONS.get(c["case"].split()[0])
        if reason and c.get("ratio", 1) < (1 if c["case"] in CASES else 0.97):
            c["notes"] += "; " + reason
    aligned = [c["ratio"] for c in cases[:named] if "ratio" in c and all(x % 8 == 0 for x in CASES[c["case"]][1:3])]
    result = dict(cases=cases, geometric_mean=round(math.exp(statistics.fmean(math.log(r) for r in ratios)), 4) if ratios else None, worst=min(ratios, default=None),
                  geometric_mean_of_the_aligned=round(math.exp(statistics.fmean(math.log(r) for r in aligned)), 4) if aligned else None,
                  versions=versions, command="bench/gemm_suite.py PLANS OUT.jsonl && bench/gemm_suite.py --summary OUT.jsonl RESULT.json")
    with open(out, "w") as f:
        json.dump(result, f, indent=1)
        f.write("\n")
    print(f"{len(ratios)} of {named} named cases, geometric mean {result['geometric_mean']}, worst {result['worst']}")


def tuned(folder, journal):
    """What `tilewright tune` would keep of these runs: per kernel and shape the constants of its fastest candidate."""
    import hashlib

    specs = json.load(open(os.path.join(folder, "candidates.json")))
    entries, gpu = {}, ""
    for row in map(json.loads, open(journal)):
        gpu = row.get("versions", {}).get("device", gpu)
        if "case" not in row or "rows" not in row:
            continue
        m, n, k, _, _ = CASES[row["case"]]
        by_kernel = {}
        for name, r in row["rows"].items():
            spec = specs.get(name)
            if spec:
                by_kernel.setdefault((spec["file"], spec["kernel"]), []).append((r["us"], spec["constants"]))
        for (file, kernel), found in by_kernel.items():
            us, constants = min(found)
            default = [u for u, c in found if c in ("", "DEPENDENT=0")] or [us]
            entries.setdefault(file, {})[(kernel, m, n, k)] = dict(kernel=kernel, gpu=gpu, sizes=dict(M=m, N=n, K=k), us=us, default_us=default[0],
                                                                   constants={a: int(b) for a, b in (x.split("=") for x in constants.split(",") if x)})
    for file, found in entries.items():
        path = os.path.join(os.path.dirname(HERE), file)
        with open(path, "rb") as f:
            digest = hashlib.sha256(f.read()).hexdigest()
        with open(os.path.splitext(path)[0] + ".tuned.json", "w") as f:
            json.dump(dict(schema="tilewright tuned 1", file=os.path.basename(file), source=digest, entries=list(found.values())), f, indent=1)
            f.write("\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("plans")
    parser.add_argument("out")
    parser.add_argument("--summary", action="store_true")
    parser.add_argument("--cases", default="")
    parser.add_argument("--candidates", default="")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--heuristics", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no further case after this time")
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--fused", action="store_true")
    parser.add_argument("--compile", action="store_true", help="time torch.compile too")
    args = parser.parse_args()
    if args.summary:
        return summary(args.plans, args.out)
    if args.tuned:
        return tuned(args.plans, args.out)
    import torch

    import plan as plans

    begun = time.time()
    journal = Journal(args.out)
    journal.put(versions=dict(torch=torch.__version__, cuda=torch.version.cuda, device=torch.cuda.get_device_name()))
    if args.fused:
        return fused(journal, args, plans)
    specs = json.load(open(os.path.join(args.plans, "candidates.json")))
    specs = {n: s for n, s in specs.items() if re.search(args.candidates, n)}
    from concurrent.futures import ThreadPoolExecutor

    def load(item):
        name, spec = item
        try:
            return Candidate(name, spec, plans.load(os.path.join(args.plans, spec["plan"]), workers=1))
        except Exception as e:
            journal.put(failed="compile " + name, error=str(e)[:400])
            print("COMPILE", name, str(e)[:300], flush=True)
            return None

    with ThreadPoolExecutor(16) as pool:
        candidates = [c for c in pool.map(load, specs.items()) if c]
    print(f"{len(candidates)} candidates compiled, {time.time() - begun:.1f} s", flush=True)
    right = [c for c in candidates if check(journal, c)]
    print(f"{len(right)} of {len(candidates)} candidates right, {time.time() - begun:.1f} s", flush=True)
    for case in CASES:
        if re.search(args.cases, case) and time.time() - begun < args.seconds:
            journal.guarded("time " + case, 60, lambda: time_case(journal, case, right, args.rounds, args.heuristics))
            torch.cuda.empty_cache()
    print(f"done, {time.time() - begun:.1f} s", flush=True)


if __name__ == "__main__":
    main()
