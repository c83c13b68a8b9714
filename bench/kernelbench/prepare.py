#!/usr/bin/env python3
"""Imports KernelBench tasks, generates their kernels and proves them; needs torch (no GPU) and the program.

    python3 bench/kernelbench/prepare.py TASKS OUT [--level 1] [--only 1,2] [--program build/bin/tilewright] [--limit-seconds 20] [--jobs 2] [--precision FILE]

FILE is what precision.py measured: convolutions are rounded as torch's library rounds them on that machine. Without it, by the rule of the front end.
Writes OUT/L1-23/{graph.json, kernels.py, plan.json, report.json} and OUT/summary.json: what was imported, generated and proved, by task and family.
"""
import argparse
import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "python"))

from tilewright import graph  # noqa: E402


def as_measured(made, found):
    convolutions = [n for n in made["nodes"] if n["op"] == "conv"]
    if len(convolutions) != len(found):
        return
    for node, row in zip(convolutions, found.values()):
        node["attributes"]["tf32"] = {"f32": False, "tf32_even": "even"}.get(row["rounding"], True)


def prepare(path, folder, program, seconds, jobs, precision):
    row = {"task": f"{path.parent.name}/{path.name}", "imported": False, "generated": False, "proved": False}
    try:
        made, notes, _ = graph.import_file(str(path))
    except Exception as error:
        return dict(row, why=f"{type(error).__name__}: {str(error)[:300]}")
    row.update(imported=True, notes=notes)
    as_measured(made, precision.get(row["task"], {}))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "graph.json").write_text(json.dumps(made, indent=1) + "\n")
    for stale in ("kernels.py", "plan.json", "report.json"):
        (folder / stale).unlink(missing_ok=True)
    done = subprocess.run([program, "generate", str(folder / "graph.json"), "-o", str(folder), "--json", "--limit-seconds", str(seconds), "--jobs", str(jobs)], capture_output=True, text=True)
    if not (folder / "report.json").exists():
        return dict(row, why=(done.stderr or done.stdout).strip()[-300:])
    report = json.loads((folder / "report.json").read_text())
    row.update(generated=True, proved=report["proved"], composition=report.get("composition"), kernels=[{k: v[k] for k in ("kernel", "family", "verdict")} for v in report["kernels"]])
    if not report["proved"]:
        row["why"] = next((k.get("why", "")[:200] for k in report["kernels"] if k["verdict"] != "proved"), "")
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tasks", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--level", type=int, action="append")
    parser.add_argument("--only")
    parser.add_argument("--program", default=str(ROOT / "build/bin/tilewright"))
    parser.add_argument("--limit-seconds", type=float, default=20)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--precision", type=pathlib.Path)
    options = parser.parse_args()
    drawn = {t["task"] for t in json.loads((ROOT / "bench/kernelbench/draw.json").read_text())["tasks"]}
    path = options.out / "summary.json"
    rows = {r["task"]: r for r in json.loads(path.read_text())["tasks"]} if path.exists() else {}
    wanted = {int(n) for n in options.only.split(",")} if options.only else None
    options.out.mkdir(parents=True, exist_ok=True)
    precision = json.loads(options.precision.read_text())["tasks"] if options.precision else {}
    for level in options.level or [1, 2]:
        for file in sorted((options.tasks / f"level{level}").glob("*.py"), key=lambda p: int(re.match(r"\d+", p.name).group())):
            number = int(re.match(r"\d+", file.name).group())
            if wanted is not None and number not in wanted:
                continue
            row = prepare(file, options.out / f"L{level}-{number}", options.program, options.limit_seconds, options.jobs, precision)
            row["held_out"] = row["task"] in drawn
            rows[row["task"]] = row
            print(f"L{level}-{number}: {'proved' if row['proved'] else 'generated' if row['generated'] else 'imported' if row['imported'] else 'not imported'} {row.get('why', '')[:100]}", flush=True)
            families = collections.Counter()
            for r in rows.values():
                for k in r.get("kernels", []):
                    families[f"{k['family']}: {k['verdict']}"] += 1
            counts = {f"level{n}": {s: sum(bool(r[s]) for r in rows.values() if r["task"].startswith(f"level{n}/")) for s in ("imported", "generated", "proved")} for n in (1, 2)}
            counts["held_out"] = {s: sum(bool(r[s]) for r in rows.values() if r.get("held_out")) for s in ("imported", "generated", "proved")}
            path.write_text(json.dumps({"counts": counts, "kernels_by_family": dict(sorted(families.items())), "tasks": sorted(rows.values(), key=lambda r: r["task"])}, indent=1) + "\n")
    print(json.dumps(json.loads(path.read_text())["counts"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
