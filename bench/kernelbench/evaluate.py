#!/usr/bin/env python3
"""Emitted ModelNew files under KernelBench's own evaluation, unchanged, on this machine's GPU.

    python3 bench/kernelbench/evaluate.py KERNELBENCH SOLUTIONS --emit GENERATED              # no GPU: writes SOLUTIONS/levelN/NUMBER.py of the tasks
    python3 bench/kernelbench/evaluate.py KERNELBENCH SOLUTIONS --out evaluation.json [--draw 20] [--trials 5] [--jobs 5] [--seconds 240]

KERNELBENCH is a checkout of the benchmark (KernelBench/level1 ..., src/kernelbench/eval.py), fetched, never committed. The tasks are those with the smallest
sha256 of a salt and their name, so nobody chooses them; --only L1-3,L2-7 names some instead. Each task is a process that calls eval_kernel_against_ref and
nothing else of ours. The benchmark's package also imports clients of language models and small helpers that judging a file does not use: where one of them is
not installed, a stand-in has the name that is imported from it (stand_ins).
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import types

SALT = "tilewright-kernelbench-solutions:"


def tasks_of(repo):
    return sorted(f"level{level}/{p.name}" for level in (1, 2) for p in (repo / f"KernelBench/level{level}").glob("[0-9]*.py"))


def short(task):
    level, number = re.match(r"level(\d)/(\d+)_", task).groups()
    return f"L{level}-{number}"


def drawn(repo, options):
    names = tasks_of(repo)
    if options.only:
        return [t for t in names if short(t) in options.only.split(",")]
    return sorted(names, key=lambda t: hashlib.sha256((SALT + t).encode()).hexdigest())[:options.draw]


def solution_path(folder, task):
    return folder / task.split("/")[0] / f"{short(task).split('-')[1]}.py"


def emit(repo, folder, generated, tasks):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "python"))
    from tilewright._solution import solution
    for task in tasks:
        made = generated / short(task)
        text = solution((repo / "KernelBench" / task).read_text(), *((made / n).read_text() for n in ("kernels.py", "plan.json", "report.json")))
        path = solution_path(folder, task)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        print(f"{short(task)}: {len(text)} characters", flush=True)


def stand_in(name, **members):
    try:
        __import__(name)
    except ImportError:
        sys.modules[name] = types.ModuleType(name)
        vars(sys.modules[name]).update(members)


def stand_ins():
    class BaseModel:
        def __init__(self, **given):
            vars(self).update(given)

    def unused(*_, **__):
        raise RuntimeError("no part of an evaluation")
    stand_in("pydantic", BaseModel=BaseModel)
    stand_in("requests")
    stand_in("dotenv", load_dotenv=lambda *_, **__: False)
    stand_in("tqdm", tqdm=lambda things, *_, **__: things)
    stand_in("openai", OpenAI=unused)
    stand_in("litellm", completion=unused)


def worker(repo, task, path, trials):
    """One task, in a process of its own."""
    stand_ins()
    sys.path.insert(0, str(repo / "src"))
    import torch
    from kernelbench.eval import eval_kernel_against_ref
    result = eval_kernel_against_ref((repo / "KernelBench" / task).read_text(), path.read_text(), seed_num=42, num_correct_trials=trials, measure_performance=False,
                                     verbose=False, backend="cuda", precision=torch.float32, device=torch.device("cuda:0"))
    said = {"compiled": bool(result.compiled), "correct": bool(result.correctness), "metadata": {k: str(v)[:300] for k, v in (result.metadata or {}).items()}}
    print("RESULT " + json.dumps(said), flush=True)


def evaluated(repo, folder, task, options):
    begin = time.time()
    words = [sys.executable, __file__, str(repo), str(folder), "--worker", task, "--trials", str(options.trials)]
    row = {"task": task, "compiled": False, "correct": False}
    # The evaluator reads the package of the files that it judges from nowhere: this process has no path to it.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=options.limit, env=environment)
        found = re.search(r"^RESULT (.*)$", done.stdout, re.M)
        row.update(json.loads(found.group(1)) if found else {"why": (done.stderr or done.stdout).strip()[-400:]})
    except subprocess.TimeoutExpired:
        row["why"] = f"not done after {options.limit:.0f} s"
    row["seconds"] = round(time.time() - begin, 1)
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("repo", type=pathlib.Path)
    parser.add_argument("solutions", type=pathlib.Path)
    parser.add_argument("--emit", type=pathlib.Path, metavar="GENERATED", help="what prepare.py made; then only the files are written")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--draw", type=int, default=20)
    parser.add_argument("--only")
    parser.add_argument("--trials", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=5)
    parser.add_argument("--limit", type=float, default=150, help="seconds of one task")
    parser.add_argument("--seconds", type=float, default=240, help="no task is begun after so many")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return worker(options.repo, options.worker, solution_path(options.solutions, options.worker), options.trials)
    tasks = drawn(options.repo, options)
    if options.emit:
        return emit(options.repo, options.solutions, options.emit, tasks)
    begin, rows = time.time(), []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        ready = [t for t in tasks if solution_path(options.solutions, t).exists()]
        for row in pool.map(lambda t: evaluated(options.repo, options.solutions, t, options) if time.time() - begin < options.seconds else {"task": t, "why": "no time left", "correct": False}, ready):
            rows.append(row)
            print(f"{time.time() - begin:6.1f} s  {short(row['task']):7} {'correct' if row['correct'] else 'WRONG  '} {row.get('why') or row.get('metadata', {}) if not row['correct'] else ''}", flush=True)
            options.out.write_text(json.dumps({"salt": SALT, "trials": options.trials, "drawn": tasks, "correct": sum(r["correct"] for r in rows), "of": len(rows), "tasks": rows}, indent=1) + "\n")
    print(f"{sum(r['correct'] for r in rows)} of {len(rows)} pass KernelBench's own evaluation", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
