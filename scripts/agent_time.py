#!/usr/bin/env python3
"""Where the wall time of optimisation runs went: milliseconds a candidate, by gate and by stage on the GPU.

    python3 scripts/agent_time.py bench/results/agent/gemm.json ...

Waiting for the GPU is a stage of its own: other processes had it.
"""
import json
import pathlib
import sys


def mean(steps, entries):
    total = {}
    for step in steps:
        for name, seconds in entries(step):
            total[name] = total.get(name, 0) + seconds
    return ", ".join(f"{name} {1000 * seconds / len(steps):.0f}" for name, seconds in total.items() if seconds > 0.0005 * len(steps)) or "-"


def main(paths):
    if not paths:
        sys.exit(__doc__)
    for path in map(pathlib.Path, paths):
        journal = json.loads(path.read_text())
        steps = journal.get("steps", []) if isinstance(journal, dict) else []
        if not steps:
            continue
        gates = mean(steps, lambda s: [(g["gate"], g["seconds"]) for g in s.get("gates", [])])
        stages = mean(steps, lambda s: s.get("evidence", {}).get("gpu", {}).get("stages", {}).items())
        print(f"{path.stem}: {len(steps)} candidates in {sum(s['seconds'] for s in steps):.0f} s ({journal['run'].get('reason')}); gates: {gates}; on the GPU: {stages}")


if __name__ == "__main__":
    main(sys.argv[1:])
