#!/usr/bin/env python3
"""Grouped GEMM kernels of the language against torch._grouped_mm and the hand-written target, in one interleaved run.

    grouped_suite.py --out bench/results/h200/grouped.json        the table: every case, the shipped constants
    grouped_suite.py --variants FILE --log LOG                    any list of variants (JSON), for tuning

A variant: {"file", "kernel": grouped_gemm | gathered_gemm | gathered_swiglu, "set": {const: value}, "cases": [case, ...] or absent for all}.
Peers: grouped_gemm and gathered_gemm: torch._grouped_mm on rows that are already gathered; gathered_swiglu: index_select, torch._grouped_mm,
then SwiGLU through torch.compile. Every variant is checked on small ragged groups (poisoned output, guard rows) before it is timed, and
what was timed is compared with the peer's result. ratio = peer time / our time.
"""
import argparse
import concurrent.futures
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "targets"))

from attention_suite import emit, label_of, say, supervise  # noqa: E402

CASES = {  # experts, tokens, experts per token, in features, out features
    "E8 T4096 k2 4096->14336": (8, 4096, 2, 4096, 14336),
    "E64 T8192 k6 2048->1408": (64, 8192, 6, 2048, 1408),
    "E256 T8192 k8 7168->2048": (256, 8192, 8, 7168, 2048),
    "E8 T64 k2 4096->14336": (8, 64, 2, 4096, 14336),
}
LOADS = ("balanced", "routed", "zipf", "half empty")
SMALL = [([5, 0, 300, 1, 256, 257, 16, 0], 200, 328), ([0, 0, 129], 64, 128), ([1], 8, 8), ([700, 513, 90, 31], 1032, 1408), ([16] * 8, 512, 4096)]


def sizes_of(case, load):
    """Rows of each expert. zipf: shares 1/rank, experts in random order; half empty: every second expert gets nothing."""
    import torch

    experts, tokens, per_token, _, _ = CASES[case]
    rows = tokens * per_token
    g = torch.Generator().manual_seed(5)
    if load == "balanced":
        return [rows // experts] * experts
    if load == "routed":
        picks = torch.rand(tokens, experts, generator=g).topk(per_token, dim=1).indices
        return torch.bincount(picks.flatten(), minlength=experts).tolist()
    weight = 1.0 / torch.arange(1, experts + 1) if load == "zipf" else (torch.arange(experts) % 2).float()
    picks = torch.multinomial(weight[torch.randperm(experts, generator=g)] if load == "zipf" else weight, rows, replacement=True, generator=g)
    return torch.bincount(picks, minlength=experts).tolist()


def tables(sizes):
    import torch

    ends = torch.tensor(sizes, dtype=torch.int64).cumsum(0)
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), ends])
    expert = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    return [x.to(torch.int32).cuda() for x in (ends, starts, expert)]


def swiglu(y):
    import torch

    n = y.shape[-1] // 2
    return torch.nn.functional.silu(y[:, :n]) * y[:, n:]


def normal(*shape, seed=1):
    import torch

    return torch.empty(*shape, device="cuda", dtype=torch.bfloat16).normal_(generator=torch.Generator(device="cuda").manual_seed(seed))


def arguments(kernel, x, w, rows, expert, starts, y):
    if kernel == "grouped_gemm":
        return dict(X=x, W=w, expert=expert, starts=starts, Y=y)
    if kernel == "gathered_swiglu":
        w = w.view(w.shape[0], 2, w.shape[1] // 2, w.shape[2])
    return dict(X=x, W=w, rows=rows, expert=expert, starts=starts, Y=y)


def check(planned, v):
    import torch

    worst = 0.0
    for i, (sizes, k, n) in enumerate(SMALL):
        gate = v["kernel"] == "gathered_swiglu"
        total, gathered = sum(sizes), v["kernel"] != "grouped_gemm"
        tokens = 97 if gathered else total
        x, w = normal(tokens, k, seed=i + 1), normal(len(sizes), n * (2 if gate else 1), k, seed=i + 50) / k**0.5
        _, starts, expert = tables(sizes)
        rows = torch.randint(0, tokens, (total,), device="cuda", dtype=torch.int32)
        guarded = torch.full((total + 2, n), float("nan"), device="cuda", dtype=torch.bfloat16)
        launch = planned.prepare(132, {}, arguments(v["kernel"], x, w, rows, expert, starts, guarded[1:-1]))
        source = x[rows.long()] if gathered else x
        ref = torch.cat([source[a:b].double() @ w[e].double().t() for e, (a, b) in enumerate(zip(starts.tolist(), starts.tolist()[1:]))])
        ref = swiglu(ref) if gate else ref
        for _ in range(2):
            guarded.fill_(float("nan"))
            launch()
            torch.cuda.synchronize()
            e = float((guarded[1:-1].double() - ref).norm() / ref.norm())
            worst = max(worst, e if e == e else float("inf"))
            if not e < 6e-3:
                return worst, f"{sizes} {k} {n}: error {e:.2e}"
            if not (guarded[0].isnan().all() and guarded[-1].isnan().all()):
                return worst, f"{sizes} {k} {n}: wrote outside"
    return worst, None


_weights = {}


def weights(case, gate):
    """The largest operand, kept from load to load of one case."""
    key = (case, gate)
    if key not in _weights:
        _weights.clear()
        import torch

        torch.cuda.empty_cache()
        experts, _, _, k, n = CASES[case]
        _weights[key] = normal(experts, n * (2 if gate else 1), k, seed=3)
        _weights[key] *= k**-0.5
    return _weights[key]


def time_case(kernels, case, load, kind, args, compiled_swiglu):
    import torch

    import harness as tw

    experts, tokens, per_token, k, n = CASES[case]
    gate = kind == "gathered_swiglu"
    sizes = sizes_of(case, load)
    total = sum(sizes)
    w = weights(case, gate)
    ends, starts, expert = tables(sizes)
    x = normal(tokens if kind != "grouped_gemm" else total, k, seed=9)
    rows = torch.randint(0, x.shape[0], (total,), device="cuda", dtype=torch.int32, generator=torch.Generator(device="cuda").manual_seed(4))
    long_rows = rows.long()
    source = x if kind == "grouped_gemm" else x[long_rows]
    wt = w.transpose(-2, -1)
    calls = {}
    if gate:
        calls["peer"] = lambda i: compiled_swiglu(torch._grouped_mm(x.index_select(0, long_rows), wt, offs=ends))
    else:
        calls["peer"] = lambda i: torch._grouped_mm(source, wt, offs=ends)
    ref = calls["peer"](0).float()
    if kind == "gathered_gemm":
        calls["gather then peer"] = lambda i: torch._grouped_mm(x.index_select(0, long_rows), wt, offs=ends)
    y = torch.full((total, n), float("nan"), device="cuda", dtype=torch.bfloat16)
    if args.targets and not gate:
        import grouped as hand

        v = dict(CLUSTER=1, GATHER=1) if kind == "gathered_gemm" else hand.choose(experts, total)
        kern = tw.compile(os.path.join(HERE, "targets", "grouped.cu"), entry="grouped", defines=hand.full(v))
        hand_launch = hand.prepare(kern, v, x, w, y, ends, rows)
        calls["target"] = lambda i: hand_launch()
    wrong = []
    for name, planned in kernels.items():
        launch = planned.prepare(132, {}, arguments(kind, x, w, rows, expert, starts, y))
        y.fill_(float("nan"))
        launch()
        torch.cuda.synchronize()
        e = float((y.float() - ref).norm() / ref.norm())
        if not e < 8e-3:
            wrong.append((name, e))
            continue
        calls[name] = lambda i, launch=launch: launch()
    del ref
    r = tw.interleave(calls, rotations=1, rounds=args.rounds, warmup_ms=20.0, target_graph_us=args.graph_us, baseline="peer")
    flop = 2.0 * total * n * k * (2 if gate else 1)
    ours = {c: dict(us=round(r[c]["median_us"], 2), tflops=round(flop / r[c]["median_us"] / 1e6, 1), ratio=round(r["ratios"]["peer/" + c]["ratio"], 4),
                    lo=round(r["ratios"]["peer/" + c]["lo"], 4), hi=round(r["ratios"]["peer/" + c]["hi"], 4)) for c in calls if c != "peer"}
    if "target" in calls:
        for c in kernels:
            if c in calls:
                q = sorted(a / b for a, b in zip(r["target"]["samples"], r[c]["samples"]))
                ours[c]["of_target"] = round(q[len(q) // 2], 4)
    return dict(kind="time", case=case, load=load, problem=kind, groups=[min(sizes), max(sizes)], peer_us=round(r["peer"]["median_us"], 2),
                peer_tflops=round(flop / r["peer"]["median_us"] / 1e6, 1), ours=ours, wrong=wrong)


def read_variants(args):
    with open(args.variants or os.path.join(HERE, "grouped_variants.json")) as f:
        return json.load(f)


def worker(args):
    import torch

    import harness as tw
    import plan as plans

    variants = read_variants(args)
    done = [json.loads(x) for x in open(args.log)]
    checked = {x["label"]: x for x in done if x["kind"] == "check"}
    begun = {x["label"] for x in done if x["kind"] == "begin"}
    timed = {(x["case"], x["load"], x["problem"]) for x in done if x["kind"] == "begin time"}

    def judge(name, **row):
        checked[name] = row
        say(args.log, kind="check", label=name, **row)

    with concurrent.futures.ThreadPoolExecutor(max_workers=16) as pool:
        emitted = list(pool.map(lambda v: emit(args.program, v), variants))
    todo = []
    for v, (p, why) in zip(variants, emitted):
        if p is None:
            judge(label_of(v), ok=False, why=why)
        else:
            todo.append((v, p))
    compiled = tw.compile_many([dict(source=p["source"], name=p["name"] + ".cu", entry=p["entry"], arch="sm_90a") for _, p in todo], workers=16)
    say(args.log, kind="phase", what="compiled")
    good = []
    for (v, p), k in zip(todo, compiled):
        name = label_of(v)
        if k.error:
            judge(name, ok=False, why=str(k.error)[-500:])
            continue
        planned = plans.PlannedKernel(p, k)
        if name in begun and name not in checked:
            judge(name, ok=False, why="hang or fault")
        if name not in checked:
            say(args.log, kind="begin", label=name)
            e, why = check(planned, v)
            judge(name, ok=why is None, why=why, error=e, registers=k.registers, spill=k.spill_bytes)
        if checked[name]["ok"]:
            good.append((v, planned))
    swiglu_compiled = torch.compile(swiglu)
    for problem in ("grouped_gemm", "gathered_gemm", "gathered_swiglu"):
        for case in CASES:
            for load in args.loads:
                kernels = {label_of(v): p for v, p in good if v["kernel"] == problem and case in v.get("cases", CASES)}
                if kernels and (case, load, problem) not in timed:
                    say(args.log, kind="begin time", case=case, load=load, problem=problem)
                    say(args.log, **time_case(kernels, case, load, problem, args, swiglu_compiled))


def table(log):
    cases, versions = [], {}
    peers = {"grouped_gemm": "torch._grouped_mm", "gathered_gemm": "torch._grouped_mm (rows already gathered)",
             "gathered_swiglu": "index_select + torch._grouped_mm + compiled SwiGLU"}
    for x in map(json.loads, open(log)):
        if x["kind"] == "versions":
            versions = x["versions"]
        if x["kind"] != "time":
            continue
        ours = {n: r for n, r in x["ours"].items() if n not in ("target", "gather then peer")}
        row = dict(case=f"{x['problem']} bf16 {x['case']} {x['load']}", ours_us=None, peer=peers[x["problem"]], peer_us=x["peer_us"], ratio=None, interval=None,
                   l2="weights exceed L2", notes="no variant was right")
        if ours:
            n, r = min(ours.items(), key=lambda kv: kv[1]["us"])
            notes = f"{n}; {r['tflops']} TF/s, peer {x['peer_tflops']}; rows per expert {x['groups'][0]} to {x['groups'][1]}"
            if "target" in x["ours"]:
                notes += f"; hand-written target {x['ours']['target']['us']} us ({r['of_target']} of its speed)"
            if "gather then peer" in x["ours"]:
                notes += f"; gather and torch._grouped_mm {x['ours']['gather then peer']['us']} us"
            row.update(ours_us=r["us"], ratio=r["ratio"], interval=[r["lo"], r["hi"]], notes=notes)
        cases.append(row)
    return cases, versions


def summary(log):
    rows = [json.loads(x) for x in open(log)]
    for x in rows:
        if x["kind"] == "check":
            print("ok   " if x["ok"] else "WRONG", x["label"], "|", x.get("why") or f"error {x['error']:.1e} regs {x['registers']} spill {x['spill']}")
        if x["kind"] == "trouble":
            print("TROUBLE", x["why"])
    for x in rows:
        if x["kind"] == "time":
            print(f"== {x['problem']} {x['case']} {x['load']} {x['groups']}: peer {x['peer_us']} us {x['peer_tflops']} TF/s {x['wrong'] or ''}")
            for n, r in sorted(x["ours"].items(), key=lambda kv: kv[1]["us"]):
                print(f"   {r['ratio']:.3f} [{r['lo']:.3f} {r['hi']:.3f}] {r['us']:8.1f} us {r['tflops']:7.1f} TF/s {r.get('of_target', '')!s:7} {n}")


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--variants", help="JSON list of variants; default bench/grouped_variants.json")
    a.add_argument("--out")
    a.add_argument("--log", default="grouped_log.jsonl")
    a.add_argument("--program", default=os.environ.get("TW", os.path.join(ROOT, "build", "bin", "tilewright")))
    a.add_argument("--rounds", type=int, default=9)
    a.add_argument("--graph-us", type=float, default=2500.0)
    a.add_argument("--quiet", type=float, default=40.0, help="seconds without a word after which a worker hangs")
    a.add_argument("--limit", type=float, default=240.0, help="seconds for everything")
    a.add_argument("--loads", nargs="+", default=list(LOADS))
    a.add_argument("--targets", action="store_true", help="the hand-written target too")
    a.add_argument("--worker", action="store_true")
    a.add_argument("--summary", action="store_true", help="only read the log")
    args = a.parse_args()
    if args.worker:
        return worker(args)
    if not args.summary:
        import torch

        say(args.log, kind="versions", versions=dict(torch=torch.__version__, cuda=torch.version.cuda, gpu=torch.cuda.get_device_name(0)))
        supervise(args, __file__)
    summary(args.log)
    if args.out:
        cases, versions = table(args.log)
        with open(args.out, "w") as f:
            json.dump(dict(cases=cases, versions=versions, command="python3 bench/grouped_suite.py --targets --out bench/results/h200/grouped.json"), f, indent=1)


if __name__ == "__main__":
    main()
