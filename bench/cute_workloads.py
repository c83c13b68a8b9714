#!/usr/bin/env python3
"""KernelBench's matrix products and activations as CuTe kernels from the loop, against torch eager.

    python3 bench/cute_workloads.py run PROGRAM --out FOLDER [--tasks NAMES] [--steps 5] [--seconds 60] [--jobs 6] [--json FILE]
    python3 bench/cute_workloads.py table FOLDER --json bench/results/h200/cute_workloads.json

`run` optimises the tasks of tasks/cute (language = "cute") with the built-in proposer, each with an empty memory; compilers work side by side, what is timed has the GPU for itself. A run tests its best kernel with fresh
inputs against fp64 and times it in turn with the task's peer, a torch expression in the precision of the reference (f32 without tf32). `table` gathers the exported runs. ratio = torch's time / ours.
"""
import argparse
import concurrent.futures
import json
import math
import pathlib
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WRITING = threading.Lock()


def tasks_of(o):
    found = sorted((ROOT / "tasks/cute").glob("*.toml"), key=lambda p: int(p.stem.split("_")[1]))
    return [p for p in found if not o.tasks or any(p.stem == n or p.stem.startswith(n + "_") for n in o.tasks.split(","))]


def optimise(o, task):
    out = pathlib.Path(o.out).resolve()
    journal = out / f"{task.stem}.db"
    began = time.monotonic()
    words = [o.program, "optimize", str(task), "--steps", str(o.steps), "--seconds", str(o.seconds), "--journal", str(journal), "--memory", str(out / f"{task.stem}.memory"),
             "--html", str(out / f"{task.stem}.html"), "-o", str(out / f"{task.stem}.cu")] + (["--no-gpu"] if o.no_gpu else [])
    try:
        ran = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=o.seconds + 90, cwd=ROOT)
        (out / f"{task.stem}.log").write_text(ran.stdout)
    except subprocess.TimeoutExpired:
        (out / f"{task.stem}.log").write_text("timed out\n")
    subprocess.run([o.program, "show", "last", "--journal", str(journal), "--export", str(out / f"{task.stem}.json")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for leftover in (f"{task.stem}.html",):
        (out / leftover).unlink(missing_ok=True)
    row = row_of(out / f"{task.stem}.json", task.stem)
    with WRITING:
        print(f"{task.stem:32} {time.monotonic() - began:5.0f} s  {line_of(row)}", flush=True)
        write(o, [row_of(out / f"{t.stem}.json", t.stem) for t in tasks_of(o)])  # after every task: a run that is cut short has said what it found


def row_of(path, name):
    row = {"case": name, "status": "no run"}
    try:
        document = json.loads(path.read_text())
    except (OSError, ValueError):
        return row
    run, steps = document["run"], document["steps"]
    facts = run.get("facts") or run
    accepted = [s for s in steps if s["outcome"] == "accepted"]
    row.update(status="no kernel", candidates=len(steps), accepted=len(accepted), failures=sorted({s.get("failure_class", "") for s in steps if s["outcome"] == "failed"}))
    compile_seconds = [g["seconds"] for s in steps for g in s["gates"] if g["gate"] == "compile"]
    if compile_seconds:
        row["compile_seconds"] = [round(min(compile_seconds), 1), round(max(compile_seconds), 1)]
    if not accepted:
        row["message"] = steps[-1]["message"] if steps else run.get("reason", "")
        return row
    best = accepted[-1]
    row.update(status=facts.get("confirmation", {}).get("status", "not measured"), us=best.get("microseconds"), roofline_share=best.get("roofline_share"), sketch=best.get("source", "").split("\n")[0][11:160],
               printed_from_proved=bool(best["evidence"].get("proof", {}).get("printed_from")))
    peer = facts.get("peer", {})
    if peer.get("status") == "measured":
        row.update(ratio=peer["ratio"], ratio_interval=peer.get("ratio_interval"), peer=peer.get("expression"), peer_us=peer["microseconds"], ours_us=peer["ours_microseconds"], versions=peer.get("versions"))
    elif peer:
        row["message"] = peer.get("why", "")
    return row


def line_of(row):
    ratio = f"{row['ratio']:.3f}x eager ({row['ours_us']:.0f} us, torch {row['peer_us']:.0f} us)" if row.get("ratio") else row.get("message", "")
    return f"{row['status']:13} {row.get('candidates', 0):2} candidates, {row.get('accepted', 0)} accepted  {ratio}"


def summary_of(rows):
    groups = {"activations": [r for r in rows if int(r["case"].split("_")[1]) >= 19], "matrix products": [r for r in rows if int(r["case"].split("_")[1]) < 19]}
    summary = {}
    for name, group in groups.items():
        ratios = [r["ratio"] for r in group if r.get("ratio") and r["status"] == "right"]
        if not group:
            continue
        summary[name] = {"cases": len(group), "right": sum(r["status"] == "right" for r in group), "measured": len(ratios)}
        if ratios:
            summary[name].update(geomean=math.exp(sum(map(math.log, ratios)) / len(ratios)), worst=min(ratios))
    return summary


def write(o, rows):
    if o.json:
        pathlib.Path(o.json).write_text(json.dumps({"suite": "cute workloads", "peer": "torch eager, f32 without tf32", "summary": summary_of(rows), "cases": rows}, indent=1) + "\n")


def table(o):
    rows = [row_of(pathlib.Path(o.out) / f"{t.stem}.json", t.stem) for t in tasks_of(o)]
    for r in rows:
        print(f"{r['case']:32} {line_of(r)}")
    print(json.dumps(summary_of(rows)))
    write(o, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("place", help="the program for `run`, the folder for `table`")
    parser.add_argument("--out", default="build-cute-workloads")
    parser.add_argument("--tasks", default="", help="cute_26_gelu, cute_26, ...: only these")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--no-gpu", action="store_true")
    parser.add_argument("--json", default="")
    o = parser.parse_args()
    if o.what == "table":
        o.out = o.place
        return table(o)
    o.program = str(pathlib.Path(o.place).resolve())
    pathlib.Path(o.out).mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(o.jobs) as pool:
        list(pool.map(lambda t: optimise(o, t), tasks_of(o)))
    table(o)


main()
