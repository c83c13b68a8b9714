#!/usr/bin/env python3
"""Does memory help? Candidates needed to come within 3% of the best found, on tasks whose runs were not remembered.

    python3 scripts/learning_table.py run --program tilewright --memories FOLDER --tasks tasks/*.toml --out learning.json
    python3 scripts/learning_table.py table learning.json
    python3 scripts/learning_table.py collect bench/results/agent/*.json --out bench/results/agent/measured.json
    python3 scripts/learning_table.py replay --program tilewright --measured bench/results/agent/measured.json --out replay.json

Tasks are split by the first hexadecimal digit of sha256("split:" + name): even ones are remembered, odd ones are tested. FOLDER holds the planner's memory of
one run of each task (NAME.mem.db). Each tested task is optimised three times per seed: with the remembered tasks' memory, with an empty memory (the
knowledge base's priors alone), and with the memory's techniques shuffled. `--ablations` runs parts left out on all named tasks instead.

`collect` makes a table of every candidate that was measured (its sketch and its time or failure) from exported journals; `replay` repeats the experiment and the ablations inside
that table, without a GPU and with many seeds: a kernel that was never measured is no candidate there. So a replay compares orders of choice among known kernels.
What needs new kernels, or a proposer that reads feedback, cannot be replayed.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import sqlite3
import statistics
import subprocess
import tempfile

PARTS = ["nothing", "invariants", "knowledge", "delay", "memory"]


def is_tested(name):
    return int(hashlib.sha256(("split:" + name).encode()).hexdigest()[0], 16) % 2 == 1


def merge(memories, names, out, shuffle_seed=None):
    """The observations of several memories in one; with a seed, under shuffled techniques."""
    rows = []
    first = None
    for name in names:
        path = memories / f"{name}.mem.db"
        if not path.exists():
            continue
        with sqlite3.connect(path) as db:
            if db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'observation'").fetchone()[0] == 0:
                continue  # a run that was killed before its first observation
            rows += db.execute("SELECT workload, stage, bottleneck, technique, reward, lesson, run FROM observation").fetchall()
        first = first or path
    if first is None:
        raise SystemExit(f"no memory in {memories}")
    shutil.copy(first, out)
    if shuffle_seed is not None:
        chosen = random.Random(shuffle_seed)
        names_of = {}
        for row in rows:
            names_of.setdefault(row[0], set()).add(row[3])
        renamed = {}
        for workload, techniques in sorted(names_of.items()):
            before = sorted(techniques)
            after = before[:]
            chosen.shuffle(after)
            renamed[workload] = dict(zip(before, after))
        rows = [(w, s, b, renamed[w][t], r, "", run) for w, s, b, t, r, _, run in rows]
    with sqlite3.connect(out) as db:
        db.execute("DELETE FROM observation")
        db.executemany("INSERT INTO observation VALUES(?, ?, ?, ?, ?, ?, ?)", rows)


def optimise(options, task, seed, memory, without, folder):
    journal = folder / f"{task.stem}-{seed}-{without or memory[0]}.db"
    mine = journal.with_suffix(".mem")
    if memory[1]:
        shutil.copy(memory[1], mine)
    command = [options.program, "optimize", str(task), "--seed", str(seed), "--steps", str(options.steps), "--plateau", str(options.plateau), "--journal", str(journal), "--memory", str(mine)]
    if without and without != "nothing":
        command += ["--without", without]
    subprocess.run(command, capture_output=True, timeout=options.timeout)
    exported = journal.with_suffix(".json")
    subprocess.run([options.program, "show", "last", "--journal", str(journal), "--export", str(exported)], capture_output=True, timeout=60)
    run = json.loads(exported.read_text())
    times = [s.get("microseconds") if s["outcome"] in ("accepted", "rejected") else None for s in run["steps"]]
    return {"task": task.stem, "seed": seed, "condition": without or memory[0], "microseconds": times, "outcomes": [s["outcome"] for s in run["steps"]]}


def run(options):
    tasks = [pathlib.Path(t) for t in options.tasks]
    folder = pathlib.Path(tempfile.mkdtemp())
    memories = pathlib.Path(options.memories)
    remembered = [t.stem for t in tasks if not is_tested(t.stem)]
    merge(memories, remembered, folder / "memory.db")
    merge(memories, remembered, folder / "shuffled.db", shuffle_seed=1)
    jobs = []
    if options.ablations:
        for task in tasks:
            others = folder / f"others-{task.stem}.db"
            merge(memories, [t.stem for t in tasks if t != task], others)
            jobs += [(task, seed, ("memory", others), part) for seed in range(1, options.seeds + 1) for part in PARTS]
    else:
        conditions = [("memory", folder / "memory.db"), ("cold", None), ("shuffled", folder / "shuffled.db")]
        jobs = [(t, seed, c, None) for t in tasks if is_tested(t.stem) for seed in range(1, options.seeds + 1) for c in conditions]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = [pool.submit(optimise, options, *job, folder) for job in jobs]
        runs = []
        for f in futures:
            try:
                runs.append(f.result())
            except Exception as problem:  # one run that fails must not cost the others
                runs.append({"failed": str(problem)[:200]})
            document = {"remembered": remembered, "tested": [t.stem for t in tasks if is_tested(t.stem)], "steps": options.steps, "ablations": options.ablations, "runs": runs}
            pathlib.Path(options.out).write_text(json.dumps(document, indent=1))
    table(options.out)


def needed(times, goal):
    for i, t in enumerate(times):
        if t is not None and t <= goal:
            return i + 1
    return None


def table(path):
    document = json.loads(pathlib.Path(path).read_text())
    runs = [r for r in document["runs"] if "task" in r]
    conditions = list(dict.fromkeys(r["condition"] for r in runs))
    print("| task | best found, us | " + " | ".join(conditions) + " |")
    print("| --- | --- | " + " | ".join("---" for _ in conditions) + " |")
    for task in dict.fromkeys(r["task"] for r in runs):
        mine = [r for r in runs if r["task"] == task]
        every = [t for r in mine for t in r["microseconds"] if t]
        if not every:
            continue
        best = min(every)
        cells = []
        for c in conditions:
            counts = [needed(r["microseconds"], 1.03 * best) for r in mine if r["condition"] == c]
            reached = [n for n in counts if n is not None]
            last = [min((t for t in r["microseconds"] if t), default=0) for r in mine if r["condition"] == c]
            text = f"{statistics.mean(reached):.1f}" if reached else "-"
            if len(reached) < len(counts):
                text += f" ({len(reached)} of {len(counts)} reached it; {min(last):.1f} us)" if last else " (no run)"
            cells.append(text)
        print(f"| {task} | {best:.1f} | " + " | ".join(cells) + " |")


def sketch_of(step):
    """The normalised sketch line of a candidate: from its source, or from its diff where a compact journal has only that."""
    found = re.search(r"^# sketch: .*$", step.get("source") or "", re.M) or re.search(r"^\+# sketch: .*$", step.get("diff") or "", re.M)
    return re.sub(r" expect=\S+", "", found.group(0).lstrip("+")).strip() if found else None


def collect(options):
    times, failures = {}, {}
    for file in options.journals:
        document = json.loads(pathlib.Path(file).read_text())
        if document.get("kind") != "tilewright run":
            continue
        task = document["run"]["task_name"]
        for step in document["steps"]:
            sketch = sketch_of(step)
            if not sketch:
                continue
            if step.get("microseconds"):
                times.setdefault(task, {}).setdefault(sketch, []).append(step["microseconds"])
            elif step["outcome"] == "failed":
                failures.setdefault(task, {})[sketch] = {"failure": step.get("failure_class") or "launch", "message": (step.get("message") or "")[:120]}
    tasks = {}
    for task in sorted(set(times) | set(failures)):
        known = {sketch: {"us": round(statistics.median(us), 3)} for sketch, us in times.get(task, {}).items()}
        tasks[task] = {**failures.get(task, {}), **known}
    table = {"kind": "tilewright measured candidates", "from": "exported journals of bench/results/agent", "tasks": tasks}
    pathlib.Path(options.out).write_text(json.dumps(table, indent=0, sort_keys=True) + "\n")
    print(", ".join(f"{task}: {len(all_)}" for task, all_ in tasks.items()))


def replay(options):
    measured = json.loads(pathlib.Path(options.measured).read_text())["tasks"]
    names = sorted(n for n in measured if (pathlib.Path(options.tasks) / f"{n}.toml").exists())
    remembered, tested = [n for n in names if not is_tested(n)], [n for n in names if is_tested(n)]
    folder = pathlib.Path(tempfile.mkdtemp())

    def once(name, seed, memory, without, label):
        journal = folder / f"{name}-{seed}-{label}.db"
        command = [options.program, "optimize", str(pathlib.Path(options.tasks) / f"{name}.toml"), "--replay", options.measured, "--seed", str(seed), "--steps", "40", "--plateau", "40", "--stop-at", "9",
                   "--journal", str(journal), "--memory", str(memory), "--html", str(folder / "page.html")]
        if without:
            command += ["--without", without]
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.timeout, env={**os.environ, "TILEWRIGHT_STATE": str(folder)})
        if done.returncode not in (0, 1):
            raise SystemExit(done.stderr)
        steps = json.loads(subprocess.run([options.program, "show", "last", "--json", "--journal", str(journal)], capture_output=True, text=True, check=True).stdout)["steps"]
        journal.unlink()
        return {"task": name, "seed": seed, "condition": label, "microseconds": [s["microseconds"] if s["outcome"] != "failed" else None for s in steps]}

    def memory_of(others, name):
        made = folder / f"{name}.mem.db"
        for other in others:
            once(other, 1, made, None, "remember")
        return made

    def copy(memory):
        mine = folder / f"mine-{random.random()}.db"
        if memory:
            shutil.copy(memory, mine)
        return mine

    rows = []
    known = memory_of(remembered, "remembered")
    merge(folder, ["remembered"], folder / "shuffled.db", shuffle_seed=1)
    for name in tested:
        for seed in range(1, options.seeds + 1):
            for label, memory in (("memory", known), ("cold", None), ("shuffled", folder / "shuffled.db")):
                rows.append(once(name, seed, copy(memory), None, label))
    parts = []
    for name in names:
        others = memory_of([n for n in names if n != name], f"others-{name}")
        for seed in range(1, options.ablation_seeds + 1):
            for part in PARTS:
                parts.append(once(name, seed, copy(others), None if part == "nothing" else part, part))
    best = {n: min(e["us"] for e in measured[n].values() if "us" in e) for n in names}
    document = {"remembered": remembered, "tested": tested, "measured_candidates": {n: len(measured[n]) for n in names}, "seeds": options.seeds, "ablation_seeds": options.ablation_seeds,
                "learning": summary(rows, best), "ablations": summary(parts, best)}
    pathlib.Path(options.out).write_text(json.dumps(document, indent=1) + "\n")
    print(replay_table(document, "learning") + "\n\n" + replay_table(document, "ablations"))
    shutil.rmtree(folder, ignore_errors=True)


def summary(rows, best):
    """Per task and condition: how many runs came within 3% of the best measured, mean and deviation of the candidates they needed (41 when it was not reached)."""
    out = {}
    for row in rows:
        n = needed(row["microseconds"], 1.03 * best[row["task"]])
        out.setdefault(row["task"], {}).setdefault(row["condition"], []).append(n)
    return {task: {c: {"reached": sum(n is not None for n in all_), "runs": len(all_), "mean": round(statistics.mean(n or 41 for n in all_), 2), "spread": round(statistics.pstdev(n or 41 for n in all_), 2)}
                   for c, all_ in conditions.items()} for task, conditions in out.items()}


def replay_table(document, part):
    """`learning` or `ablations` as Markdown."""
    conditions = list(next(iter(document[part].values())))
    lines = ["| task | measured candidates | " + " | ".join(conditions) + " |", "| --- | --- | " + " | ".join("---" for _ in conditions) + " |"]
    for task, cells in document[part].items():
        texts = [f"{c['mean']:.1f} ± {c['spread']:.1f}" + ("" if c["reached"] == c["runs"] else f" ({c['reached']} of {c['runs']})") for c in (cells[k] for k in conditions)]
        lines.append(f"| {task} | {document['measured_candidates'][task]} | " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n\n" + outcome(document, part)


def outcome(document, part):
    """What came out, in words: a difference counts where it is beyond two standard errors."""
    base, name = ("cold", "the cold start") if part == "learning" else ("nothing", "nothing left out")
    said = []
    for condition in next(iter(document[part].values())):
        if condition == base:
            continue
        counts = {"fewer": [], "more": [], "as many": []}
        for task, cells in document[part].items():
            a, b = cells[condition], cells[base]
            error = 2 * (a["spread"] ** 2 / a["runs"] + b["spread"] ** 2 / b["runs"]) ** 0.5
            difference = a["mean"] - b["mean"]
            counts["as many" if abs(difference) <= max(error, 0.05) else "fewer" if difference < 0 else "more"].append(task)
        words = ", ".join(f"{kind} on {len(tasks)}" + (f" ({', '.join(tasks)})" if kind != "as many" and tasks else "") for kind, tasks in counts.items())
        said.append(f"{condition if part == 'learning' else 'without ' + condition}: {words}")
    return f"Candidates needed, against {name}: " + "; ".join(said) + "."


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="action", required=True)
    p = parts.add_parser("run")
    p.add_argument("--program", default="tilewright")
    p.add_argument("--memories", required=True)
    p.add_argument("--tasks", nargs="+", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--seeds", type=int, default=1)
    p.add_argument("--steps", type=int, default=20)
    p.add_argument("--plateau", type=int, default=10)
    p.add_argument("--jobs", type=int, default=12)
    p.add_argument("--timeout", type=float, default=120)
    p.add_argument("--ablations", action="store_true")
    p = parts.add_parser("table")
    p.add_argument("file")
    p = parts.add_parser("collect")
    p.add_argument("journals", nargs="+")
    p.add_argument("--out", required=True)
    p = parts.add_parser("replay")
    p.add_argument("--program", default="tilewright")
    p.add_argument("--measured", required=True)
    p.add_argument("--tasks", default="tasks", help="the folder of the task files")
    p.add_argument("--out", required=True)
    p.add_argument("--seeds", type=int, default=10)
    p.add_argument("--ablation-seeds", type=int, default=4)
    p.add_argument("--timeout", type=float, default=120)
    p = parts.add_parser("replay-table")
    p.add_argument("file")
    options = parser.parse_args()
    if options.action == "replay-table":
        document = json.loads(pathlib.Path(options.file).read_text())
        return print(replay_table(document, "learning") + "\n\n" + replay_table(document, "ablations"))
    {"run": run, "collect": collect, "replay": replay, "table": lambda o: table(o.file)}[options.action](options)


if __name__ == "__main__":
    main()
