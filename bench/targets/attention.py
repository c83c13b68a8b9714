#!/usr/bin/env python3
"""Checks and times bench/targets/attention.cu on a GPU, next to torch's scaled_dot_product_attention (cuDNN).

    attention.py --check                     correctness of the shipped variants, small shapes
    attention.py --time [--rows rows.json]   the shipped variants against cuDNN, interleaved
    attention.py --sweep FILE [--out ...]    both, for every variant listed in FILE (JSON: groups of variants)

FLOPs are counted as 4 B H S^2 d, half of it for causal. Layout of Q, K, V, O: [B, H, S, d]; LSE: [B, H, S], fp32.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
SOURCE = os.path.join(HERE, "attention.cu")
LN2 = math.log(2.0)

# (head dim, causal) -> the variant that ships. Keys in capitals are -D constants, the others are launch choices:
#   persistent  1: one block per multiprocessor, 0: one block per tile
#   section_mb  heads whose K and V fit in so many MiB are walked together, longest tiles first; 0: one head at a time
SHIPPED = {
    (64, 0): dict(HEAD_DIM=64, BN=128, CONSUMERS=3, CAUSAL=0, KV_STAGES=4, Q_STAGES=2),
    (64, 1): dict(HEAD_DIM=64, BN=128, CONSUMERS=3, CAUSAL=1, KV_STAGES=3, Q_STAGES=2, DYNAMIC=1, section_mb=32),
    (128, 0): dict(HEAD_DIM=128, BN=80, CONSUMERS=3, CAUSAL=0, KV_STAGES=4),
    (128, 1): dict(HEAD_DIM=128, BN=80, CONSUMERS=3, CAUSAL=1, KV_STAGES=4, PINGPONG=0, DYNAMIC=1, section_mb=32),
    (256, 0): dict(HEAD_DIM=256, BN=64, CONSUMERS=2, CAUSAL=0, KV_STAGES=2),
    (256, 1): dict(HEAD_DIM=256, BN=64, CONSUMERS=2, CAUSAL=1, KV_STAGES=2, DYNAMIC=1, section_mb=32),
}

# batch, query heads, key/value heads, queries, keys, input scale, layout
SMALL_SHAPES = [
    (1, 1, 1, 1, 1, 1.0, "bhsd"),
    (2, 3, 3, 17, 17, 1.0, "bhsd"),
    (1, 2, 2, 127, 127, 1.0, "bhsd"),
    (2, 4, 1, 300, 300, 1.0, "bhsd"),  # grouped-query
    (1, 8, 2, 300, 177, 1.0, "bhsd"),
    (1, 2, 2, 77, 1200, 1.0, "bhsd"),
    (2, 4, 4, 513, 513, 6.0, "bhsd"),  # large scores: the reference maximum moves
    (1, 4, 4, 640, 640, 1.0, "bshd"),  # other strides
    (1, 3, 3, 700, 700, 100.0, "bhsd"),  # scores of +-400: exponentials out of range unless the reference follows
    (1, 2, 1, 900, 900, 1.0, "ramp"),  # the earlier the key, the larger: every key tile outgrows those before
    (2, 40, 40, 1000, 1000, 1.0, "bhsd"),  # several tiles per block
]


def defines_of(v):
    return {k: x for k, x in v.items() if k[0].isupper()}


def smem_bytes(v):
    d, bn, c, st, qs = v["HEAD_DIM"], v["BN"], v["CONSUMERS"], v.get("KV_STAGES", 2), v.get("Q_STAGES", 1)
    barriers = 16 * c * qs + 32 * st + 32 + 8 + 8
    return c * qs * 64 * d * 2 + 2 * st * bn * d * 2 + barriers + 1024


def name_of(v):
    return " ".join(f"{k}={x}" for k, x in v.items())


class Attention:
    """One compiled variant, ready to be bound to tensors."""

    def __init__(self, tw, kernel, v):
        import torch

        self.tw, self.kernel, self.v = tw, kernel, v
        self.counter = torch.zeros(2, dtype=torch.int32, device="cuda")
        self.sms = torch.cuda.get_device_properties(0).multi_processor_count

    def map(self, x, rows):
        b, h, s, d = x.shape
        e = x.element_size()
        return self.tw.tensor_map(x, dtype="bf16", dims=[64, s, d // 64, h, b],
                                  strides=[x.stride(2) * e, 128, x.stride(1) * e, x.stride(0) * e],
                                  box=[64, rows, d // 64, 1, 1], swizzle=128, l2_promotion=256)

    def bind(self, q, k, v, o, lse):
        tw, c = self.tw, self.v
        b, h, sq, d = q.shape
        sk = k.shape[2]
        tiles = -(-sq // (64 * c["CONSUMERS"])) * b * h
        grid = min(tiles, self.sms) if c.get("persistent", 1) else tiles
        section_mb = c.get("section_mb", 0)
        section = max(1, min(b * h, int(section_mb * 2**20 // (sk * d * 4) * (h // k.shape[1]))))
        args = [self.map(q, 64), self.map(k, c["BN"]), self.map(v, c["BN"]), o, lse, tw.i64(o.stride(0)),
                tw.i64(o.stride(1)), tw.i64(o.stride(2)), tw.i32(b), tw.i32(h), tw.i32(h // k.shape[1]), tw.i32(sq),
                tw.i32(sk), tw.i32(section), tw.f32(1.0 / math.sqrt(d) / LN2), self.counter]
        return self.kernel.prepare(grid=(grid, 1, 1), block=(128 * (c["CONSUMERS"] + 1), 1, 1), args=args,
                                   smem=smem_bytes(c))


def reference(q, k, v, causal):
    import torch

    group = q.shape[1] // k.shape[1]
    kd, vd = (x.double().repeat_interleave(group, dim=1) for x in (k, v))
    s = q.double() @ kd.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if causal:
        keep = torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).tril()
        s = s.masked_fill(~keep, float("-inf"))
    return torch.softmax(s, -1) @ vd, torch.logsumexp(s, -1)


def cudnn(q, k, v, causal):
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel

    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        return F.scaled_dot_product_attention(q, k, v, is_causal=bool(causal), enable_gqa=q.shape[1] != k.shape[1])


def rel(x, ref):
    return float((x.double() - ref).norm() / ref.norm())


def tensors(shape, d, seed):
    import torch

    b, h, hk, sq, sk, scale, layout = shape
    g = torch.Generator(device="cuda").manual_seed(seed)

    def one(hh, s):
        dims = (b, s, hh, d) if layout == "bshd" else (b, hh, s, d)
        x = (torch.randn(dims, device="cuda", generator=g) * math.sqrt(scale)).bfloat16()
        return x.transpose(1, 2) if layout == "bshd" else x

    q, k, v = one(h, sq), one(hk, sk), one(hk, sk)
    if layout == "ramp":
        k *= torch.linspace(120.0, 0.1, sk, device="cuda").bfloat16()[:, None]
    o = torch.empty_like(q)
    lse = torch.empty(b, h, sq, device="cuda")
    o.fill_(float("nan"))
    lse.fill_(float("nan"))
    return q, k, v, o, lse


_references = {}


def small_case(i, shape, d, causal, seed):
    """Inputs, fp64 reference and cuDNN's own error for one small shape; kept for the next variant of the same kind."""
    key = (i, d, causal, seed)
    if key not in _references:
        q, k, v, _, _ = tensors(shape, d, seed + i)
        ref, ref_lse = reference(q, k, v, causal)
        try:
            peer = rel(cudnn(q, k, v, causal), ref)
        except RuntimeError:
            peer = float("nan")  # cuDNN refuses some small shapes
        _references[key] = (q, k, v, ref, ref_lse, peer)
    return _references[key]


def check_variant(tw, att, seed):
    """Error of O and LSE against fp64 on every small shape; ok when within 1.5x of cuDNN's own error (or 4e-3)."""
    import torch

    d, causal = att.v["HEAD_DIM"], att.v["CAUSAL"]
    rows, ok = [], True
    for i, shape in enumerate(SMALL_SHAPES):
        q, k, v, ref, ref_lse, peer = small_case(i, shape, d, causal, seed)
        o = torch.full_like(q, float("nan"))
        lse = torch.full(q.shape[:3], float("nan"), device="cuda")
        run = att.bind(q, k, v, o, lse)
        run()
        torch.cuda.synchronize()
        e, el = rel(o, ref), float((lse.double() - ref_lse).abs().max())
        lse_ok = el < 1e-3 + 2e-6 * float(ref_lse.abs().max())
        good = e < max(4e-3, 1.5 * peer if peer == peer else 0) and lse_ok and not bool(torch.isnan(o).any())
        first = o.clone()
        o.fill_(float("nan"))
        run()
        torch.cuda.synchronize()
        good = good and torch.equal(first, o)  # the same launch twice: bit-identical, or there is a race
        ok = ok and good
        rows.append(dict(shape=list(shape), err=e, cudnn_err=peer, lse_abs=el, ok=bool(good)))
    return ok, rows


def flops(b, h, s, d, causal):
    return 4.0 * b * h * s * s * d / (2 if causal else 1)


def time_case(tw, atts, d, causal, s, seed, rounds, budget_ms):
    """Interleaves cuDNN and every variant on one problem; B*S = 16384, H*d = 2048."""
    import torch

    b, h, sets = 16384 // s, 2048 // d, 2
    data = [tensors((b, h, h, s, s, 1.0, "bhsd"), d, seed + i) for i in range(sets)]
    fns, results, bad = {}, {}, []
    fns["cudnn"] = lambda i: cudnn(data[i % sets][0], data[i % sets][1], data[i % sets][2], causal)
    peers = [fns["cudnn"](i) for i in range(sets)]
    for name, att in atts.items():
        runs = [att.bind(*x) for x in data]
        for i, x in enumerate(data):
            x[3].fill_(float("nan"))
            runs[i]()
        torch.cuda.synchronize()
        err = max(float((x[3].float() - peers[i].float()).norm() / peers[i].float().norm()) for i, x in enumerate(data))
        if not err < 1e-2:
            bad.append((name, err))
            continue
        fns[name] = lambda i, runs=runs: runs[i % sets]()
    estimate_us = flops(b, h, s, d, causal) / 500e6
    calls = max(2, 2 * int(budget_ms * 1000 / estimate_us / rounds / 2))
    res = tw.interleave(fns, rotations=sets, calls_per_graph=calls, rounds=rounds, baseline="cudnn")
    for name in list(atts):
        if name not in fns:
            continue
        x, r = res[name], res["ratios"]["cudnn/" + name]
        results[name] = dict(us=x["median_us"], ratio=r["ratio"], lo=r["lo"], hi=r["hi"])
    y = res["cudnn"]
    return dict(d=d, causal=causal, S=s, B=b, H=h, gflop=flops(b, h, s, d, causal) / 1e9,
                cudnn=dict(us=y["median_us"]), ours=results, wrong=bad)


def worker(args):
    """Compiles, checks and times groups of variants (a group: same d and causal); a line of JSON per finished piece."""
    import torch
    import harness as tw

    groups = json.loads(args.worker)
    skip = set(json.loads(args.skip))
    seen = [json.loads(x) for x in open(args.out)] if os.path.exists(args.out) else []
    checked = {x["name"] for x in seen if x["kind"] == "check"}
    timed = {(x["d"], x["causal"], x["S"]) for x in seen if x["kind"] == "time"}
    out = open(args.out, "a", buffering=1)

    def say(**kw):
        out.write(json.dumps(kw) + "\n")

    t0 = time.time()
    variants = [v for g in groups for v in g]
    ks = tw.compile_many([dict(source_path=SOURCE, entry="attention", defines=defines_of(v), arch="sm_90a")
                          for v in variants], workers=16)
    say(kind="phase", what="compiled", seconds=time.time() - t0)
    atts = {}
    for v, k in zip(variants, ks):
        n = name_of(v)
        if n in skip:
            continue
        if getattr(k, "error", None):
            say(kind="compile", name=n, error=str(k.error)[-600:])
            continue
        if n not in checked:
            say(kind="compile", name=n, registers=k.registers, spill=k.spill_bytes, serialized="serialized" in (k.log or ""))
            say(kind="begin", name=n)
            ok, rows = check_variant(tw, Attention(tw, k, v), args.seed)
            say(kind="check", name=n, ok=ok, rows=rows)
            if not ok:
                continue
        atts[n] = Attention(tw, k, v)
    say(kind="phase", what="checked", seconds=time.time() - t0)
    _references.clear()
    torch.cuda.empty_cache()
    for s in [] if args.no_time else args.sizes:
        for g in groups:
            d, causal = g[0]["HEAD_DIM"], g[0]["CAUSAL"]
            mine = {name_of(v): atts[name_of(v)] for v in g if name_of(v) in atts}
            if mine and (d, causal, s) not in timed:
                say(kind="begin", name=f"time {(d, causal, s)}")
                say(kind="time", **time_case(tw, mine, d, causal, s, args.seed + 100, args.rounds, args.budget_ms))
    say(kind="phase", what="timed", seconds=time.time() - t0)


def profile(args):
    """A few launches of one variant on one size, for a profiler; with "cudnn", lists the kernels of one SDPA call."""
    import torch
    import harness as tw

    s = args.sizes[0]
    if args.profile.startswith("cudnn"):
        d, causal = map(int, args.profile.split()[1:])
        q, k, v, _, _ = tensors((16384 // s, 2048 // d, 2048 // d, s, s, 1.0, "bhsd"), d, 1)
        cudnn(q, k, v, causal)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as p:
            for _ in range(5):
                cudnn(q, k, v, causal)
            torch.cuda.synchronize()
        for e in p.key_averages():
            print("cudnn", d, causal, s, e.key[:150], e.count, round(e.device_time, 1), "us")
        return
    v = json.loads(args.profile)
    kernel = tw.compile(SOURCE, entry="attention", defines=defines_of(v))
    data = tensors((16384 // s, 2048 // v["HEAD_DIM"], 2048 // v["HEAD_DIM"], s, s, 1.0, "bhsd"), v["HEAD_DIM"], 1)
    run = Attention(tw, kernel, v).bind(*data)
    for _ in range(4):
        run()
    torch.cuda.synchronize()


def run_groups(groups, args):
    """Runs the worker; if a variant hangs or breaks the context, drops it and goes on with the rest."""
    skip, end = [], time.time() + args.limit
    while time.time() < end - 15:
        cmd = [sys.executable, os.path.abspath(__file__), "--worker", json.dumps(groups), "--skip", json.dumps(skip),
               "--out", args.out, "--seed", str(args.seed), "--rounds", str(args.rounds), "--budget-ms",
               str(args.budget_ms), "--sizes", *map(str, args.sizes)] + (["--no-time"] if args.no_time else [])
        p = subprocess.Popen(cmd, stderr=subprocess.PIPE, text=True)
        why, size, since = None, -1, time.time()
        while p.poll() is None:  # a piece that takes longer than piece_timeout hangs
            time.sleep(0.5)
            now = os.path.getsize(args.out) if os.path.exists(args.out) else 0
            if now != size:
                size, since = now, time.time()
            if time.time() - since > (args.piece_timeout if size > 0 else 60) or time.time() > end:
                why = "timeout"
                p.kill()
                p.wait()
        if p.returncode == 0:
            return
        why = why or p.stderr.read()[-1500:]
        lines = [json.loads(x) for x in open(args.out)] if os.path.exists(args.out) else []
        done = {x["name"] for x in lines if x["kind"] == "check"}
        begun = [x["name"] for x in lines if x["kind"] == "begin"]
        last = begun[-1] if begun else None
        print("worker failed at", last, ":", why, flush=True)
        if last is None or last in done or last.startswith("time"):
            return
        skip += [last] + [x["name"] for x in lines if x["kind"] == "check" and not x["ok"]]


def summary(path, out=None):
    checks, times, rows = {}, [], []
    for line in open(path):
        x = json.loads(line)
        if x["kind"] == "check":
            checks[x["name"]] = x
        elif x["kind"] == "time":
            times.append(x)
        elif x["kind"] == "compile" and (x.get("error") or x.get("spill") or x.get("serialized")):
            print("COMPILE", x["name"], x.get("error", f"spill {x.get('spill')} serialized {x.get('serialized')}")[-300:])
    for n, x in checks.items():
        worst = max(x["rows"], key=lambda r: (not r["ok"], r["err"]))
        state = "ok" if x["ok"] else "WRONG"
        print(f"{state:5} {n}: worst err {worst['err']:.2e} (cudnn {worst['cudnn_err']:.2e}) "
              f"lse {max(r['lse_abs'] for r in x['rows']):.1e}" +
              ("" if x["ok"] else "  bad: " + str([(r["shape"], r["err"], r["lse_abs"]) for r in x["rows"] if not r["ok"]])))
    groups = {}
    for t in times:
        groups.setdefault((t["d"], t["causal"]), []).append(t)
        for n, r in t["ours"].items():
            rows.append(dict(case=f"attention d{t['d']} {'causal' if t['causal'] else 'full'} S{t['S']}", ours_us=r["us"],
                             peer="cuDNN (torch SDPA)", peer_us=t["cudnn"]["us"], ratio=r["ratio"], interval=[r["lo"], r["hi"]],
                             l2="inputs 192 MiB per set, 2 sets in turn", notes=n))
        if t["wrong"]:
            print("WRONG at", t["S"], t["wrong"])
    for (d, causal), ts in sorted(groups.items()):
        print(f"== d{d} {'causal' if causal else 'full'}: TF/s at S = {[t['S'] for t in ts]}; cuDNN "
              f"{[round(t['gflop'] / t['cudnn']['us'] * 1e3) for t in ts]}")
        table = []
        for n in ts[0]["ours"]:
            have = [t for t in ts if n in t["ours"]]
            ratio = [t["ours"][n]["ratio"] for t in have]
            g = math.exp(sum(map(math.log, ratio)) / len(ratio))
            table.append((g, n, [round(t["gflop"] / t["ours"][n]["us"] * 1e3) for t in have], [round(r, 3) for r in ratio]))
        for g, n, tf, ratio in sorted(table, reverse=True):
            print(f"  {g:.3f}  {tf} {ratio}  {n}")
    if out:
        json.dump(rows, open(out, "w"), indent=1)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--check", action="store_true")
    a.add_argument("--time", action="store_true")
    a.add_argument("--sweep")
    a.add_argument("--worker")
    a.add_argument("--profile", help="a variant as JSON, or 'cudnn D CAUSAL'")
    a.add_argument("--skip", default="[]")
    a.add_argument("--no-time", action="store_true")
    a.add_argument("--out", default="attention_log.jsonl")
    a.add_argument("--rows")
    a.add_argument("--seed", type=int, default=int(time.time()) % 100000)
    a.add_argument("--rounds", type=int, default=7)
    a.add_argument("--budget-ms", type=float, default=60.0, help="device time per variant and size")
    a.add_argument("--piece-timeout", type=float, default=20.0)
    a.add_argument("--limit", type=float, default=300.0, help="seconds for everything")
    a.add_argument("--sizes", type=int, nargs="+", default=[2048, 4096, 8192, 16384])
    args = a.parse_args()
    if args.worker:
        return worker(args)
    if args.profile:
        return profile(args)
    groups = json.load(open(args.sweep)) if args.sweep else [[v] for v in SHIPPED.values()]
    if args.check and not args.time:
        args.no_time = True
    if os.path.exists(args.out):
        os.remove(args.out)
    run_groups(groups, args)
    summary(args.out, args.rows)


if __name__ == "__main__":
    main()
