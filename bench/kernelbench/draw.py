#!/usr/bin/env python3
"""Draws the held-out tasks of KernelBench levels 1 and 2 by hash of their names; --check compares with the committed draw.

    git ls-tree -r --name-only HEAD KernelBench/level1 KernelBench/level2 | bench/kernelbench/draw.py [--check]

The names are read from standard input, as level1/NAME.py with or without folders before it.
"""
import hashlib
import json
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
SALT = "tilewright-kernelbench-holdout:"
COUNT = 40


def seen_before(root):
    """Numbers of the level-1 tasks that tasks/ had when the draw was made: skeletons may have been developed on them."""
    return {int(p.name.split("_")[1]) for p in (root / "tasks").glob("kb_*.toml")}


def draw(names, excluded):
    ranked = []
    for name in names:
        level, number = re.match(r"level(\d)/(\d+)_", name).groups()
        if level == "1" and int(number) in excluded:
            continue
        ranked.append((hashlib.sha256((SALT + name).encode()).hexdigest(), name))
    return [{"task": name, "sha256": digest} for digest, name in sorted(ranked)[:COUNT]]


def main():
    names = sorted({m.group(0) for line in sys.stdin if (m := re.search(r"level[12]/\d+_[^/\s]*\.py", line))})
    path = HERE / "draw.json"
    if "--check" in sys.argv:
        recorded = json.loads(path.read_text())
        again = draw(names, set(recorded["excluded_level1"]))
        print("as committed" if again == recorded["tasks"] else "differs from the committed draw")
        return 0 if again == recorded["tasks"] else 1
    excluded = seen_before(HERE.parent.parent)
    record = {
        "statement": "40 tasks held out: the smallest sha256(salt + 'levelL/FILE.py') among levels 1 and 2, drawn before the work on graph import "
        "and generation began. No template, skeleton or front-end rule is developed on them; they are run for results only.",
        "salt": SALT,
        "source": "ScalingIntelligence/KernelBench @ 423217d",
        "of": len(names),
        "excluded_level1": sorted(excluded),
        "excluded_because": "tasks/ had a task file of them before the draw",
        "tasks": draw(names, excluded),
    }
    path.write_text(json.dumps(record, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
