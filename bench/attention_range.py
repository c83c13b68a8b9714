#!/usr/bin/env python3
"""Flash attention with scores that leave the range of their first reference: values against fp64, times of each way to keep one (STAY) against one another and cuDNN.

    python3 bench/attention_range.py OUT.json [--ways "STAY=1;STAY=0"] [--lengths 1024,4096,16384] [--seconds 420]
        --random            random scores only: which constants are best (--ways "STAY=0;STAY=0,C=2,BN=96"); a way that cannot be made is left out

Scores are random, or have one key 300 nats above the others (the first key, one in the middle), rise or fall by a nat a key, begin with keys 300 nats below the others, or are
40 times as wide as random ones. Times of random scores are of calls that take turns; those of other scores are told as multiples of the same kernel's with random ones.
"""
import argparse
import concurrent.futures
import json
import math
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "python"))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402

import harness  # noqa: E402
import tilewright  # noqa: E402

KINDS = ("random", "first key", "middle key", "rising", "falling", "sunk", "wide")
LIFT = 4.0  # the part of every query along which keys are lifted


def made(kind, b, hq, hk, s, d, seed):
    """Q, K, V of one kind of scores. Keys are worked through from the last to the first."""
    g = torch.Generator(device="cuda").manual_seed(seed)
    q, k, v = (torch.randn((b, h, s, d), generator=g, device="cuda").bfloat16() for h in (hq, hk, hk))
    if kind == "random":
        return q, k, v
    if kind == "wide":
        return q * 40, k, v
    q[..., 0] = LIFT
    up = torch.zeros(s, device="cuda")  # nats above the others
    if kind == "first key":
        up[0] = 300
    elif kind == "middle key":
        up[s // 2 + 5] = 300
    elif kind in ("rising", "falling"):
        up = torch.arange(s, device="cuda").float()
        up = up.flip(0) if kind == "rising" else up
    elif kind == "sunk":
        up[-160:] = -300
    k[..., 0] = (up * math.sqrt(d) / LIFT).bfloat16()
    return q, k, v


def wrong(out, lse, q, k, v, causal):
    """The largest error of some rows of some heads, of O in parts of its largest element, of LSE in parts of 1 + |LSE|."""
    b, hq, s, d = q.shape
    worst = 0.0
    for i, h in ((0, 0), (b - 1, hq - 1)):
        rows = torch.unique(torch.cat([torch.arange(0, min(s, 200)), torch.randint(0, s, (200,)), torch.arange(s - 70, s)])).cuda()
        keys = k[i, h * k.shape[1] // hq].double()
        scores = q[i, h, rows].double() @ keys.t() / math.sqrt(d)
        if causal:
            scores = scores.masked_fill(torch.arange(s, device="cuda")[None, :] > rows[:, None], float("-inf"))
        want = torch.softmax(scores, 1) @ v[i, h * k.shape[1] // hq].double()
        got = out[i, h, rows].double()
        if not bool(torch.isfinite(got).all()):
            return float("inf")
        sums = torch.logsumexp(scores, 1)
        worst = max(worst, float((got - want).abs().max() / want.abs().max()), float(((lse[i, h, rows].double() - sums).abs() / (1 + sums.abs())).max()))
    return worst


def once_ms(call):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def made_kernels(cases, ways):
    """{(case, way): kernel}, each text compiled once, side by side; None where it cannot be made."""
    texts = {}
    for case in cases:
        for name, constants in ways:
            every = {n: x for n, x in {**case["constants"], **constants}.items() if n != "TURNS" or case["kernel"] == "attention_causal"}
            texts.setdefault((case["kernel"], json.dumps(every, sort_keys=True)), []).append((case["case"], name))

    def compiled(kernel, text):
        constants = json.loads(text)
        tensors = [torch.zeros((1, h, 256, constants["D"]), device="cuda", dtype=torch.bfloat16) for h in (constants["G"], 1, 1, constants["G"])]
        try:
            made = getattr(tilewright.load(os.path.join(os.path.dirname(HERE), "kernels", "attention_sm90.py"), **constants), kernel)
            made(*tensors, torch.empty((1, constants["G"], 256), device="cuda"), 0.1)
            return made
        except Exception as e:  # constants that do not fit
            print("left out:", kernel, text, str(e).splitlines()[0][:120], flush=True)
            return None

    with concurrent.futures.ThreadPoolExecutor(max(2, (os.cpu_count() or 4) - 2)) as pool:
        jobs = {key: pool.submit(compiled, *key) for key in texts}
        return {user: jobs[key].result() for key, users in texts.items() for user in users}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out")
    p.add_argument("--random", action="store_true")
    p.add_argument("--ways", default="STAY=1;STAY=0", help="constants of each way, NAME=VALUE,...; the first is the usual one, the last the one to be judged")
    p.add_argument("--lengths", default="1024,4096,16384")
    p.add_argument("--seconds", type=float, default=420)
    args = p.parse_args()
    started = time.time()
    ways = [(way, {n: int(x) for n, x in (pair.split("=") for pair in way.split(","))}) for way in args.ways.split(";")]
    anywhere = [name for name, constants in ways if constants["STAY"] == 0]  # the others do rows over that leave the range
    usual, last = ways[0][0], ways[-1][0]
    for off in (torch.backends.cuda.enable_flash_sdp, torch.backends.cuda.enable_mem_efficient_sdp, torch.backends.cuda.enable_math_sdp):
        off(False)
    torch.backends.cuda.enable_cudnn_sdp(True)
    suite = json.load(open(os.path.join(HERE, "suites", "attention.json")))["cases"]
    cases = [c for c in suite if c["constants"]["DT"] == "bf16" and c["constants"]["D"] < 256 and str(c["sizes"]["S"]) in args.lengths.split(",")]
    cases.sort(key=lambda c: c["sizes"]["S"] != 4096)
    modules, results, bad = made_kernels(cases, ways), [], 0
    kinds = KINDS[:1] if args.random else KINDS
    for case in cases:
        if time.time() - started > args.seconds:
            print("no time left for", case["case"], flush=True)
            continue
        b, hk, s, d = case["sizes"]["B"], case["sizes"]["HK"], case["sizes"]["S"], case["constants"]["D"]
        hq = hk * case["constants"]["G"]
        causal, scale = case["kernel"] == "attention_causal", case["scalars"]["scale"]
        kernels = {}
        for name, _ in ways:
            if modules[case["case"], name] is not None:
                kernels[name] = modules[case["case"], name]
        o, lse = torch.empty((b, hq, s, d), device="cuda", dtype=torch.bfloat16), torch.empty((b, hq, s), device="cuda")
        sets = [made("random", b, hq, hk, s, d, i) for i in range(2)]
        found = {"case": case["case"], "errors": {}, "times": {}, "hostile": {}}

        def ours(kernel, inputs):
            return lambda i: kernel(*inputs[i], o, lse, scale)

        def cudnn(inputs):
            return lambda i: F.scaled_dot_product_attention(*inputs[i], is_causal=causal, enable_gqa=hq > hk)  # noqa: B023

        for kind in kinds:  # values first
            inputs = made(kind, b, hq, hk, s, d, 7)
            for name, kernel in kernels.items():
                if name not in anywhere and kind != "random":
                    continue
                o.fill_(float("nan"))
                lse.fill_(float("nan"))
                kernel(*inputs, o, lse, scale)
                error = wrong(o, lse, *inputs, causal)
                found["errors"][f"{name} {kind}"] = error
                if not error < 0.03:
                    bad += 1
                    print("WRONG", case["case"], name, kind, error, flush=True)
        timed = harness.interleave({**{n: ours(k, sets) for n, k in kernels.items()}, "cuDNN": cudnn(sets)}, rotations=2, rounds=24)
        found["times"] = {n: timed[n]["median_us"] for n in (*kernels, "cuDNN")}
        found["ratios"] = {f"{a}/{n}": timed["ratios"][f"{a}/{n}"] for a in (usual, "cuDNN") for n in kernels if a != n}
        for kind in kinds[1:]:
            inputs = [made(kind, b, hq, hk, s, d, 7)]
            calls = {n: ours(kernels[n], inputs) for n in anywhere}
            calls = {**calls, "cuDNN": cudnn(inputs), "random": ours(kernels[last], sets)}
            t = harness.interleave(calls, rotations=1, rounds=8, warmup_ms=15)
            found["hostile"][kind] = {n: t[n]["median_us"] / t["random"]["median_us"] for n in calls if n != "random"}
            if s == 4096:
                ours(kernels[usual], inputs)(0)
                found["hostile"][kind][usual] = once_ms(lambda: ours(kernels[usual], inputs)(0)) * 1000 / found["times"][usual]  # noqa: B023
        results.append(found)
        print(f"{found['case']:34s} " + "  ".join(f"{n} {x:8.1f}" for n, x in found["times"].items())
              + "  | " + "  ".join(f"{n} {r['ratio']:.3f}" for n, r in found["ratios"].items()), flush=True)
        for n in found["hostile"].get("rising", ()):
            print(f"    {n:14s} of {last} random: " + "  ".join(f"{k} {x[n]:.2f}" for k, x in found["hostile"].items() if n in x), flush=True)
        with open(args.out, "w") as f:
            json.dump({"cases": results, "wrong": bad, "gpu": torch.cuda.get_device_name(), "torch": torch.__version__}, f, indent=1)
    print("wrong values:", bad, " seconds:", round(time.time() - started), flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
