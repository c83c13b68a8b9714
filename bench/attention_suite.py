#!/usr/bin/env python3
"""Attention kernels of the language against cuDNN (torch SDPA) and the hand-written target, in one interleaved run.

    attention_suite.py --out bench/results/h200/attention.json        the table: every case, the shipped constants
    attention_suite.py --variants FILE --log LOG                      any list of variants (JSON), for tuning

A variant: {"file": kernel file, "kernel": name, "set": {const: value}, "d", "causal", "dtype", "group", "sizes": [S, ...]}.
Every variant is checked against fp64 on small shapes (poisoned outputs, guards around them, two launches that must agree to the bit)
before it is timed; what was timed is compared with the peer's result. The work runs in a child process: what hangs or faults costs
itself, and the child starts again behind it. ratio = peer time / our time.
"""
import argparse
import concurrent.futures
import functools
import json
import math
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(HERE, "targets"))
LOG2E = 1.4426950408889634
GUARD = 1024

# batch, key/value heads, queries, keys, input scale
SMALL = [(1, 1, 1, 1, 1.0), (2, 3, 17, 17, 1.0), (1, 2, 127, 127, 1.0), (2, 1, 300, 300, 1.0), (1, 2, 300, 177, 1.0), (1, 2, 77, 1200, 1.0),
         (2, 2, 513, 513, 6.0), (1, 1, 700, 700, 100.0), (2, 20, 1000, 1000, 1.0)]


def say(log, **row):
    with open(log, "a") as f:
        f.write(json.dumps(row) + "\n")


def label_of(v):
    return v.get("label") or v["kernel"] + " " + " ".join(f"{k}={x}" for k, x in v["set"].items())


def emit(program, v):
    """The launch plan of a variant: what `tilewright emit --to plan` prints."""
    if "plan" in v:
        with open(v["plan"]) as f:
            return json.load(f)["kernels"][0], None
    constants = ",".join(f"{k}={x}" for k, x in v["set"].items())
    p = subprocess.run([program, "emit", v["file"], "--kernel", v["kernel"], "--set", constants, "--to", "plan"], capture_output=True, text=True)
    if p.returncode != 0:
        return None, (p.stdout + p.stderr)[-500:]
    return json.loads(p.stdout)["kernels"][0], None


def reference(q, k, v, causal):
    import torch

    group = q.shape[1] // k.shape[1]
    kd, vd = (x.double().repeat_interleave(group, dim=1) for x in (k, v))
    s = q.double() @ kd.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        s = s.masked_fill(~torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).tril(), float("-inf"))
    return torch.softmax(s, -1) @ vd, torch.logsumexp(s, -1)


def cudnn(q, k, v, causal, gqa):
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return F.scaled_dot_product_attention(q, k, v, is_causal=bool(causal), enable_gqa=gqa)


def relative(x, ref):
    return float((x.double() - ref.double()).norm() / ref.double().norm())


def guarded(shape, dtype):
    import torch

    n = math.prod(shape)
    whole = torch.full((n + 2 * GUARD,), float("nan"), device="cuda", dtype=dtype)
    return whole, whole[GUARD:GUARD + n].view(shape)


def inputs(b, hk, group, s, t, d, dtype, scale, seed):
    import torch

    g = torch.Generator(device="cuda").manual_seed(seed)
    one = lambda h, n: (torch.randn((b, h, n, d), device="cuda", generator=g) * math.sqrt(scale)).to(dtype)  # noqa: E731
    return one(hk * group, s), one(hk, t), one(hk, t)


@functools.lru_cache(maxsize=len(SMALL))   # the variants of one problem come one after another
def small_case(i, group, d, dtype, causal, seed):
    b, hk, s, t, scale = SMALL[i]
    q, k, x = inputs(b, hk, group, s, t, d, dtype, scale, seed + i)
    return (q, k, x, *reference(q, k, x, causal))


def check(kernel, v, seed):
    """Worst error of O against fp64 and of LSE; the reason when it is wrong."""
    import torch

    dtype = getattr(torch, v["dtype"])
    worst, worst_lse = 0.0, 0.0
    for i, (b, hk, s, t, scale) in enumerate(SMALL):
        q, k, x, ref, ref_lse = small_case(i, v["group"], v["d"], dtype, v["causal"], seed)
        whole, o = guarded(q.shape, dtype)
        whole_lse, lse = guarded(q.shape[:3], torch.float32)
        launch = kernel.prepare(132, dict(scale=LOG2E / math.sqrt(v["d"])), dict(Q=q, K=k, V=x, O=o, LSE=lse))
        results = []
        for _ in range(2):
            whole.fill_(float("nan"))
            whole_lse.fill_(float("nan"))
            launch()
            torch.cuda.synchronize()
            results.append(o.clone())
        shape = f"{(b, hk * v['group'], hk, s, t, scale)}"
        if not torch.equal(results[0], results[1]):
            return worst, worst_lse, shape + ": two launches differ"
        if not all(bool(torch.isnan(w[:GUARD]).all()) and bool(torch.isnan(w[-GUARD:]).all()) for w in (whole, whole_lse)):
            return worst, worst_lse, shape + ": wrote outside"
        e, el = relative(o, ref), float((lse.double() - ref_lse).abs().max())
        worst, worst_lse = max(worst, e), max(worst_lse, el)
        if not (e < 4e-3 and el < 1e-3 + 2e-6 * float(ref_lse.abs().max())):
            return worst, worst_lse, f"{shape}: error {e:.2e}, LSE {el:.2e}"
    return worst, worst_lse, None


def target_of(v):
    """The hand-written target for this problem (bf16 only), and the same without its optimistic reference and lazy rescale."""
    import attention as hand
    import harness as tw

    if v["dtype"] != "bfloat16":
        return {}
    best = hand.SHIPPED[(v["d"], v["causal"])]
    variants = {"target": best, "target eager": dict(best, OPTIMISTIC=0, RESCALE_SLACK="0.0f")}
    kernels = tw.compile_many([dict(source_path=hand.SOURCE, entry="attention", defines=hand.defines_of(x), arch="sm_90a") for x in variants.values()])
    return {n: hand.Attention(tw, k, x) for (n, x), k in zip(variants.items(), kernels) if not getattr(k, "error", None)}


def time_case(kernels, targets, v, s, seed, rounds, graph_us):
    import torch

    import harness as tw

    d, group, causal, dtype = v["d"], v["group"], v["causal"], getattr(torch, v["dtype"])
    b, h, sets = max(1, 16384 // s), 2048 // d, 2
    data, peers = [], []
    for i in range(sets):
        q, k, x = inputs(b, h // group, group, s, s, d, dtype, 1.0, seed + i)
        o, lse = torch.empty_like(q), torch.empty(q.shape[:3], device="cuda")
        data.append((q, k, x, o, lse))
    gqa, how = group > 1, "cuDNN (torch SDPA)"
    try:
        cudnn(*data[0][:3], causal, gqa)
        given = [x[:3] for x in data]
    except RuntimeError:
        given = [(q, k.repeat_interleave(group, 1), x.repeat_interleave(group, 1)) for q, k, x, _, _ in data]
        gqa, how = False, "cuDNN (torch SDPA), heads expanded beforehand"
    peers = [cudnn(*x, causal, gqa) for x in given]
    calls = {"cudnn": lambda i: cudnn(*given[i], causal, gqa)}
    wrong = []
    bound = {}
    for name, kernel in kernels.items():
        bound[name] = [kernel.prepare(132, dict(scale=LOG2E / math.sqrt(d)), dict(zip(("Q", "K", "V", "O", "LSE"), x))) for x in data]
    for name, hand in targets.items():
        bound[name] = [hand.bind(*x) for x in data]
    for name, runs in bound.items():
        bad = 0.0
        for x, run, peer in zip(data, runs, peers):
            x[3].fill_(float("nan"))
            run()
            torch.cuda.synchronize()
            bad = max(bad, relative(x[3], peer))
        if not bad < 1e-2:
            wrong.append((name, bad))
            continue
        calls[name] = lambda i, runs=runs: runs[i]()
    r = tw.interleave(calls, rotations=sets, rounds=rounds, warmup_ms=20.0, target_graph_us=graph_us, baseline="cudnn")
    flop = 4.0 * b * h * s * s * d / (2 if causal else 1)
    ours = {n: dict(us=round(r[n]["median_us"], 2), tflops=round(flop / r[n]["median_us"] / 1e6, 1), ratio=round(r["ratios"]["cudnn/" + n]["ratio"], 4),
                    lo=round(r["ratios"]["cudnn/" + n]["lo"], 4), hi=round(r["ratios"]["cudnn/" + n]["hi"], 4)) for n in calls if n != "cudnn"}
    if "target" in calls:   # paired by round: how the emitted kernels stand to the hand-written one
        for n in kernels:
            if n in calls:
                q = sorted(x / y for x, y in zip(r["target"]["samples"], r[n]["samples"]))
                ours[n]["of_target"] = round(q[len(q) // 2], 4)
    return dict(kind="time", d=d, causal=causal, dtype=v["dtype"], group=group, S=s, B=b, H=h, peer=how, cudnn_us=round(r["cudnn"]["median_us"], 2),
                cudnn_tflops=round(flop / r["cudnn"]["median_us"] / 1e6, 1), ours=ours, wrong=wrong)


def worker(args):
    """Everything that the log does not have yet: compiles all, then group by group checks and times."""
    import torch

    import harness as tw
    import plan as plans

    groups = groups_of(read_variants(args))
    done = [json.loads(x) for x in open(args.log)]
    checked = {(x["key"], x["label"]): x for x in done if x["kind"] == "check"}
    begun = {(x["key"], x["label"]) for x in done if x["kind"] == "begin"}
    timed = {(x["key"], x["S"]) for x in done if x["kind"] == "begin time"}

    def judge(key, v, **row):
        checked[(key, label_of(v))] = row
        say(args.log, kind="check", key=key, label=label_of(v), **row)

    todo = [(key, v) for key, group in groups.items() for v in group if checked.get((key, label_of(v)), {"ok": True})["ok"]]
    with concurrent.futures.ThreadPoolExecutor(max_workers=16) as pool:
        emitted = list(pool.map(lambda kv: emit(args.program, kv[1]), todo))
    for (key, v), (p, why) in zip(todo, emitted):
        if p is None:
            judge(key, v, ok=False, why=why)
    todo = [(key, v, p) for (key, v), (p, _) in zip(todo, emitted) if p]
    compiled = tw.compile_many([dict(source=p["source"], name=p["name"] + ".cu", entry=p["entry"], arch="sm_90a") for _, _, p in todo], workers=16)
    say(args.log, kind="phase", what="compiled")
    kernels = {}
    for (key, v, p), k in zip(todo, compiled):
        if k.error:
            judge(key, v, ok=False, why=str(k.error)[-500:])
            continue
        kernel = plans.PlannedKernel(p, k)
        if (key, label_of(v)) in begun - set(checked):
            judge(key, v, ok=False, why="hang or fault")
        if (key, label_of(v)) not in checked:
            say(args.log, kind="begin", key=key, label=label_of(v))
            e, el, why = check(kernel, v, args.seed)
            judge(key, v, ok=why is None, why=why, error=e, lse=el, registers=k.registers, spill=k.spill_bytes)
        if checked[(key, label_of(v))]["ok"]:
            kernels.setdefault(key, {})[label_of(v)] = kernel
    torch.cuda.empty_cache()
    say(args.log, kind="phase", what="checked")
    for key, group in groups.items():
        targets = None
        for s in group[0]["sizes"]:
            if key not in kernels or (key, s) in timed:
                continue
            if targets is None:
                targets = target_of(group[0]) if args.targets else {}
            say(args.log, kind="begin time", key=key, S=s)
            say(args.log, key=key, **time_case(kernels[key], targets, group[0], s, args.seed, args.rounds, args.graph_us))
            torch.cuda.empty_cache()


def supervise(args, script):
    """Runs the worker until it has come to the end; what hangs or faults is left out and the rest goes on."""
    end = time.time() + args.limit
    while time.time() < end:
        p = subprocess.Popen([sys.executable, os.path.abspath(script), "--worker"] + sys.argv[1:], stderr=subprocess.PIPE, text=True)
        size, since = -1, time.time()
        while p.poll() is None:
            time.sleep(0.3)
            now = os.path.getsize(args.log)
            if now != size:
                size, since = now, time.time()
            if time.time() - since > args.quiet or time.time() > end:
                p.kill()
                say(args.log, kind="trouble", key="", why="killed: " + ("out of time" if time.time() > end else "no progress"))
        if p.wait() == 0:
            return
        say(args.log, kind="trouble", key="", why=p.stderr.read()[-600:])


def read_variants(args):
    with open(args.variants or os.path.join(HERE, "attention_variants.json")) as f:
        return json.load(f)


def groups_of(variants):
    out = {}
    for v in variants:
        out.setdefault(f"d{v['d']} {'causal' if v['causal'] else 'full'} {v['dtype']} group {v['group']} {v['sizes']}", []).append(v)
    return out


def table(log, variants):
    """One row per case: the fastest of the variants that are proved; a faster one that is not is named in the notes."""
    cases, versions = [], {}
    open_ones = {(v["d"], v["causal"], v["dtype"], v["group"], label_of(v)): v["unproved"] for v in variants if v.get("unproved")}
    for x in map(json.loads, open(log)):
        if x["kind"] == "versions":
            versions = x["versions"]
        if x["kind"] != "time":
            continue
        everything = {n: r for n, r in x["ours"].items() if not n.startswith("target")}
        key = (x["d"], x["causal"], x["dtype"], x["group"])
        ours = {n: r for n, r in everything.items() if (*key, n) not in open_ones}
        name = f"attention {x['dtype']} d{x['d']} {'causal' if x['causal'] else 'full'} S{x['S']} B{x['B']} H{x['H']}" + (f" GQA{x['group']}" if x["group"] > 1 else "")
        if not ours:
            cases.append(dict(case=name, ours_us=None, peer=x["peer"], peer_us=x["cudnn_us"], ratio=None, interval=None, l2="inputs 192 MiB per set, 2 sets in turn",
                              notes="no variant was right"))
            continue
        n, r = min(ours.items(), key=lambda kv: kv[1]["us"])
        notes = f"{n}; {r['tflops']} TF/s, peer {x['cudnn_tflops']}"
        m, faster = min(everything.items(), key=lambda kv: kv[1]["us"])
        if m != n:
            notes += f"; {m} takes {faster['us']} us (ratio {faster['ratio']}) and is not proved: {open_ones[(*key, m)]}"
        if "target" in x["ours"]:
            notes += f"; hand-written target {x['ours']['target']['us']} us ({r.get('of_target')} of its speed), without its optimistic reference {x['ours'].get('target eager', {}).get('us')} us"
        cases.append(dict(case=name, ours_us=r["us"], peer=x["peer"], peer_us=x["cudnn_us"], ratio=r["ratio"], interval=[r["lo"], r["hi"]],
                          l2="inputs 192 MiB per set, 2 sets in turn", notes=notes))
    return cases, versions


def summary(log):
    rows = [json.loads(x) for x in open(log)]
    for x in rows:
        if x["kind"] == "check":
            print("ok   " if x["ok"] else "WRONG", x["key"], "|", x["label"], "|", x.get("why") or f"error {x['error']:.1e} lse {x['lse']:.0e} regs {x['registers']} spill {x['spill']}")
        if x["kind"] == "trouble":
            print("TROUBLE", x["key"], x["why"])
    for x in rows:
        if x["kind"] == "time":
            print(f"== {x['key']} S{x['S']}: cudnn {x['cudnn_us']} us {x['cudnn_tflops']} TF/s; {x['wrong'] or ''}")
            for n, r in sorted(x["ours"].items(), key=lambda kv: kv[1]["us"]):
                print(f"   {r['ratio']:.3f} [{r['lo']:.3f} {r['hi']:.3f}] {r['tflops']:7.1f} TF/s {r.get('of_target', '')!s:7} {n}")


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--variants", help="JSON list of variants; default bench/attention_variants.json")
    a.add_argument("--out")
    a.add_argument("--log", default="attention_log.jsonl")
    a.add_argument("--program", default=os.environ.get("TW", os.path.join(ROOT, "build", "bin", "tilewright")))
    a.add_argument("--seed", type=int, default=1)
    a.add_argument("--rounds", type=int, default=10)
    a.add_argument("--graph-us", type=float, default=2000.0)
    a.add_argument("--quiet", type=float, default=25.0, help="seconds without a word after which a worker hangs")
    a.add_argument("--limit", type=float, default=240.0, help="seconds for everything")
    a.add_argument("--targets", action="store_true", help="the hand-written target too")
    a.add_argument("--worker", action="store_true")
    a.add_argument("--summary", action="store_true", help="only read the log")
    args = a.parse_args()
    if args.worker:
        return worker(args)
    if not args.summary:
        import torch

        say(args.log, kind="versions", versions=dict(torch=torch.__version__, cuda=torch.version.cuda, cudnn=torch.backends.cudnn.version(), gpu=torch.cuda.get_device_name(0)))
        supervise(args, __file__)
    summary(args.log)
    if args.out:
        cases, versions = table(args.log, read_variants(args))
        with open(args.out, "w") as f:
            json.dump(dict(cases=cases, versions=versions, command="python3 bench/attention_suite.py --targets --out bench/results/h200/attention.json"), f, indent=1)


if __name__ == "__main__":
    main()
