#!/usr/bin/env python3
"""Shapes that were never tuned: what the tuned data of kernels/gemm_deferred_sm90.py chooses for them, against the best of the whole const space.

    python3 bench/unseen.py PROGRAM OUT.json [SHAPES]

Sizes are drawn log-uniformly (multiples of 8; M and N 128 to 8192, K 512 to 8192). A shape takes the constants of the nearest tuned shape, as a launch does
(src/runtime/tuned.h). Every point of the space is timed in one interleaved run, then the three best and the chosen one once more; ratio = best / chosen.
"""
import concurrent.futures
import itertools
import json
import math
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path.insert(0, HERE)
FILE, KERNEL = "kernels/gemm_deferred_sm90.py", "gemm_deferred_tn"
DEFAULT = dict(BN=256, STAGES=4, GROUP=8, DEPENDENT=0)


def space():
    for bn, group, dependent in itertools.product((128, 256), (1, 4, 8, 16), (0, 1)):
        for stages in (2, 3, 4, 5, 6) if bn == 128 else (2, 3, 4):
            yield dict(BN=bn, STAGES=stages, GROUP=group, DEPENDENT=dependent)


def key(constants):
    return ",".join(f"{k}={v}" for k, v in constants.items())


def emitted(program, constants):
    p = subprocess.run([program, "emit", os.path.join(ROOT, FILE), "--kernel", KERNEL, "--set", key(constants), "--to", "plan"], capture_output=True, text=True, check=True)
    return json.loads(p.stdout)["kernels"][0]


def chosen(tuned, m, n, k):
    """The constants of the nearest tuned shape."""
    def distance(e):
        return sum(math.log2(v / e["sizes"][s]) ** 2 for s, v in dict(M=m, N=n, K=k).items())
    return {**DEFAULT, **min((e for e in tuned["entries"] if e["kernel"] == KERNEL), key=distance)["constants"]}


def shapes(count, seed=11):
    g = random.Random(seed)
    draw = lambda low, high: int(round(math.exp(g.uniform(math.log(low), math.log(high))) / 8)) * 8  # noqa: E731
    return [(draw(128, 8192), draw(128, 8192), draw(512, 8192)) for _ in range(count)]


def main():
    import torch

    import harness as tw
    import plan as plans

    program, out, count = sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 30
    tuned = json.load(open(os.path.join(ROOT, FILE.replace(".py", ".tuned.json"))))
    points = list(space())
    with concurrent.futures.ThreadPoolExecutor(max_workers=16) as pool:
        texts = list(pool.map(lambda c: emitted(program, c), points))
    compiled = tw.compile_many([dict(source=p["source"], name=p["name"] + ".cu", entry=p["entry"], arch="sm_90a") for p in texts], workers=16)
    kernels = {key(c): plans.PlannedKernel(p, k) for c, p, k in zip(points, texts, compiled) if not k.error}
    rows = []
    for m, n, k in shapes(count):
        sets = max(2, min(8, -(-(128 << 20) // (2 * (m * k + n * k + m * n)))))
        data = [tuple(torch.randn(*s, device="cuda").bfloat16() for s in ((m, k), (n, k))) + (torch.empty(m, n, device="cuda", dtype=torch.bfloat16),) for _ in range(sets)]
        want = data[0][0].float() @ data[0][1].float().t()
        calls = {}
        for name, kernel in kernels.items():
            runs = [kernel.prepare(132, {}, dict(A=a, B=b, C=c)) for a, b, c in data]
            data[0][2].fill_(float("nan"))
            runs[0]()
            torch.cuda.synchronize()
            if float((data[0][2].float() - want).norm() / want.norm()) < 6e-3:
                calls[name] = lambda i, runs=runs: runs[i]()
        first = tw.interleave(calls, rotations=sets, rounds=3, warmup_ms=5.0, target_graph_us=200.0, baseline=next(iter(calls)))
        mine = key(chosen(tuned, m, n, k))
        finalists = sorted(calls, key=lambda c: first[c]["median_us"])[:3]
        last = tw.interleave({c: calls[c] for c in {*finalists, mine}}, rotations=sets, rounds=9, warmup_ms=10.0, target_graph_us=600.0, baseline=mine)
        best = min(finalists, key=lambda c: last[c]["median_us"])
        rows.append(dict(M=m, N=n, K=k, chosen=mine, chosen_us=round(last[mine]["median_us"], 2), best=best, best_us=round(last[best]["median_us"], 2),
                         ratio=round(min(1.0, last[best]["median_us"] / last[mine]["median_us"]), 4), wrong=len(kernels) - len(calls)))
        print(rows[-1], flush=True)
        ratios = sorted(r["ratio"] for r in rows)
        with open(out, "w") as f:
            json.dump(dict(kernel=FILE, shapes=rows, median=ratios[len(ratios) // 2], worst=ratios[0], points=len(kernels), command="python3 bench/unseen.py build/bin/tilewright bench/results/h200/unseen.json"), f, indent=1)


if __name__ == "__main__":
    main()
