#!/usr/bin/env python3
"""How a search of 200 tasks with 20 candidates each spreads over many workers, from recorded times.

    python3 bench/clusters/simulate.py --out bench/results/clusters/scaling.json
    tilewright bench --draw bench/results/clusters/scaling.json --svg docs/images/scaling.svg

The time of a candidate is one that was recorded on an H200 (`seconds` of every step in bench/results/agent/*.json). A task is drawn as one recorded run: its
candidates are drawn with replacement from that run's steps, so slow tasks are slow throughout. What starting a unit costs is measured by `make test-clusters`
(`overhead_s` in bench/results/clusters/engines.json: a plain process, and what the engine adds); how fast an engine hands units out is assumed. Workers take units in the order of the list, as a job array and Ray do.
"""
import argparse
import glob
import heapq
import json
import pathlib
import random
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
WORKERS = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]


def recorded_runs():
    runs = {}
    for file in sorted(glob.glob(str(ROOT / "bench/results/agent/*.json"))):
        steps = json.load(open(file)).get("steps")
        if steps:
            runs[pathlib.Path(file).stem] = [s["seconds"] for s in steps if s["seconds"] > 0]
    return runs


def draw(runs, tasks, candidates, seed):
    rng = random.Random(seed)
    names = sorted(runs)
    return [[rng.choice(runs[name]) for _ in range(candidates)] for name in (rng.choice(names) for _ in range(tasks))]


def makespan(times, workers, dispatch):
    """List scheduling: the next unit goes to the worker that is free first. The engine hands out one unit every `dispatch` seconds at most."""
    free = [0.0] * workers
    handed = 0.0
    for t in times:
        begin = max(heapq.heappop(free), handed)
        handed = begin + dispatch
        heapq.heappush(free, begin + t)
    return max(free)


def curve(name, units, overhead, dispatch, work):
    points = []
    for workers in WORKERS:
        span = makespan([t + overhead for t in units], workers, dispatch)
        points.append({"workers": workers, "efficiency": round(work / (workers * span), 4), "seconds": round(span, 1)})
    return {"name": name, "points": points, "units": len(units), "longest_s": round(max(units), 2), "overhead_s": overhead, "dispatch_s": dispatch}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--candidates", type=int, default=20)
    parser.add_argument("--seed", type=int, default=22)
    parser.add_argument("--engines", type=pathlib.Path, default=ROOT / "bench/results/clusters/engines.json")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    runs = recorded_runs()
    tasks = draw(runs, options.tasks, options.candidates, options.seed)
    work = sum(map(sum, tasks))
    measured = json.loads(options.engines.read_text()) if options.engines.exists() else {}
    costs = measured.get("overhead_s", {})
    # Ray's own figure is taken only where it is no more than ten times that of a plain process: its workers run at niceness 15, and on a machine with other
    # work they wait for that.
    plain = costs.get("local", 0.3)
    overhead = {"slurm": plain + costs.get("slurm", 1.0), "ray": plain + (costs["ray"] if costs.get("ray", 1e9) < 10 * plain else 0.2)}
    dispatch = {"slurm": 0.02, "ray": 0.005}  # assumed: how fast a controller hands out units
    whole, split = [sum(t) for t in tasks], [c for t in tasks for c in t]
    longest_first = sorted(whole, reverse=True)
    curves = [curve("a unit is a task (its candidates one after another), Slurm", whole, overhead["slurm"], dispatch["slurm"], work),
              curve("the same, Ray", whole, overhead["ray"], dispatch["ray"], work),
              curve("the same, longest task first (no engine promises it)", longest_first, overhead["ray"], dispatch["ray"], work),
              curve("a unit is a candidate (independent samples), Ray", split, overhead["ray"], dispatch["ray"], work),
              curve("a unit is a candidate, Slurm", split, overhead["slurm"], dispatch["slurm"], work)]
    result = {"schema": "tilewright scaling 1", "title": f"{options.tasks} tasks of {options.candidates} candidates: how much of the workers is used", "seed": options.seed,
              "recorded": {name: len(times) for name, times in runs.items()}, "work_s": round(work, 1), "longest_task_s": round(max(whole), 1), "curves": curves}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"work {work:.0f} s, {len(whole)} tasks of {min(whole):.0f} to {max(whole):.0f} s")
    for c in curves:
        print(f"{c['name']:<62}" + "".join(f"{p['workers']:>5}:{100 * p['efficiency']:4.0f}%" for p in c["points"] if p["workers"] in (8, 64, 128, 256, 512)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
