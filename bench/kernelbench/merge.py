#!/usr/bin/env python3
"""Puts rows of a later run of run.py into a table of results: a task that was measured again has its new row, the others keep theirs.

    python3 bench/kernelbench/merge.py bench/results/h200/kernelbench/level1.json NEW.json
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from run import number_in, summary  # noqa: E402


def main():
    table, later = (json.loads(pathlib.Path(p).read_text()) for p in sys.argv[1:3])
    level = int(later["tasks"][0]["task"][5])
    rows = {r["task"]: r for r in table["tasks"]}
    rows.update((r["task"], r) for r in later["tasks"] if r.get("ours_us") or r["task"] not in rows)
    ordered = sorted(rows.values(), key=number_in)
    merged = {"device": later["device"], "torch": later["torch"], "summary": summary(ordered, level), "tasks": ordered}
    pathlib.Path(sys.argv[1]).write_text(json.dumps(merged, indent=1) + "\n")
    print(json.dumps(merged["summary"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
