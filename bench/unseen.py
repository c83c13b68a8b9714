#!/usr/bin/env python3
"""Shapes that were never tuned: what a launch chooses for them from the tuned data of kernels/gemm_deferred_sm90.py, against the best of the whole const space.

    python3 bench/unseen.py PROGRAM OUT.json [SHAPES [SEED]]

Sizes are drawn log-uniformly (multiples of 8; M and N 128 to 8192, K 512 to 8192). Every point of the declared const space is timed in one interleaved run, then
the three best once more beside an ordinary launch without constants, which takes what src/runtime/tuned.h says. ratio = best / chosen.
"""
import json
import math
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(ROOT, "python")]
FILE, KERNEL = "kernels/gemm_deferred_sm90.py", "gemm_deferred_tn"


def space(program):
    """The points that the language takes, compiled side by side into the cache."""
    ran = subprocess.run([program, "tune", os.path.join(ROOT, FILE), "--kernel", KERNEL, "--limit", "1000", "--dry-run", "--json", "-"], check=True, stdout=subprocess.PIPE, text=True)
    return [p["constants"] for p in json.loads(ran.stdout)["points"] if p["verdict"] != "rejected"]


def shapes(count, seed):
    g = random.Random(seed)
    draw = lambda low, high: int(round(math.exp(g.uniform(math.log(low), math.log(high))) / 8)) * 8  # noqa: E731
    return [(draw(128, 8192), draw(128, 8192), draw(512, 8192)) for _ in range(count)]


def main():
    import torch

    import harness
    import tilewright

    program, out = sys.argv[1:3]
    count, seed = (int(a) if a else b for a, b in zip((sys.argv[3:] + ["", ""])[:2], (30, 11)))
    path = os.path.join(ROOT, FILE)
    kernels = {json.dumps(c): getattr(tilewright.load(path, **c), KERNEL) for c in space(program)}
    kernels["chosen"] = getattr(tilewright.load(path), KERNEL)
    rows = []
    for m, n, k in shapes(count, seed):
        sets = max(2, min(8, -(-(128 << 20) // (2 * (m * k + n * k + m * n)))))
        data = [tuple(torch.randn(*s, device="cuda").bfloat16() for s in ((m, k), (n, k))) + (torch.empty(m, n, device="cuda", dtype=torch.bfloat16),) for _ in range(sets)]
        want = data[0][0].float() @ data[0][1].float().t()
        calls, wrong = {}, []
        for name, kernel in kernels.items():
            data[0][2].fill_(float("nan"))
            kernel(*data[0])
            if float((data[0][2].float() - want).norm() / want.norm()) < 6e-3:
                calls[name] = lambda i, kernel=kernel: kernel(*data[i])
            else:
                wrong.append(name)
        points = {name: call for name, call in calls.items() if name != "chosen"}
        first = harness.interleave(points, rotations=sets, rounds=3, warmup_ms=5.0, target_graph_us=200.0, baseline=next(iter(points)))
        finalists = sorted(points, key=lambda c: first[c]["median_us"])[:3]
        last = harness.interleave({c: calls[c] for c in [*finalists, "chosen"]}, rotations=sets, rounds=9, warmup_ms=10.0, target_graph_us=600.0, baseline="chosen")
        best = min(finalists, key=lambda c: last[c]["median_us"])
        rows.append(dict(M=m, N=n, K=k, chosen_us=round(last["chosen"]["median_us"], 2), best=json.loads(best), best_us=round(last[best]["median_us"], 2),
                         ratio=round(min(1.0, last[best]["median_us"] / last["chosen"]["median_us"]), 4), wrong=wrong))
        print(json.dumps(rows[-1]), flush=True)
        ratios = sorted(r["ratio"] for r in rows)
        with open(out, "w") as f:
            json.dump(dict(kernel=FILE, shapes=rows, median=ratios[len(ratios) // 2], worst=ratios[0], points=len(points), versions=dict(torch=torch.__version__, gpu=torch.cuda.get_device_name()),
                           command=f"python3 bench/unseen.py build/bin/tilewright bench/results/h200/unseen.json {count} {seed}"), f, indent=1)


if __name__ == "__main__":
    main()
