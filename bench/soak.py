#!/usr/bin/env python3
"""Soak: many candidates (good, wrong, crashing, hanging, malicious) through one journal, and what is left afterwards.

    python3 bench/soak.py build/bin/tilewright --candidates 1000 --json bench/results/soak.json

`tilewright optimize` with a command proposer, run after run (a run ends when every technique has been tried) until there were so many candidates; the proposer answers by the number of the step: honest kernels of many forms, every cheat of tests/plan/cheats.py, and programs that crash, hang, fork or eat the
memory. Looked at every second: memory, processes and open files of the run, and the GPU's memory where there is one. Fails when the journal lacks a step, when anything grows without end, when a process or a folder is left,
or when a cheat was accepted.
"""
import argparse
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "plan"))
import cheats  # noqa: E402

# What the proposer does in step n. It reads the request, so that it knows the number without keeping anything.
PROPOSER = '''import json, os, signal, sys, time
sys.path.insert(0, {cheats!r})
import cheats
request = json.load(sys.stdin)
n = request["step"] + int(os.environ["SOAK_OFFSET"])
kernels = [c for c in cheats.KERNELS if c.task == "dbl"]
what = n % 10
if request["step"] == 0 or what in (0, 3, 7):                       # honest, in another form each time
    width = [32, 64, 128, 256, 512][n // 10 % 5]
    text = cheats.HONEST.replace("128)) * 128", f"{{width}})) * {{width}}").replace("i + 128", f"i + {{width}}").replace("threads=128", f"threads={{max(32, width // [1, 2, 4][n // 50 % 3])}}")
    print(json.dumps({{"source": text + f"# step {{n}}\\n", "note": "honest"}}))
elif what in (1, 2, 4, 5):
    cheat = kernels[(n // 10 * 4 + [1, 2, 4, 5].index(what)) % len(kernels)]
    print(json.dumps({{"source": cheat.source, "note": cheat.name}}))
elif what == 6:
    os.kill(os.getpid(), [signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT][n // 10 % 3])
elif what == 8:
    if n // 10 % 4 == 0:
        while True: os.fork() or time.sleep(60)
    if n // 10 % 4 == 1:
        x = []
        while True: x.append(bytearray(256 << 20))
    if n // 10 % 4 == 2:
        os.setsid() if os.fork() == 0 else None
        time.sleep(0.1)
    print("no kernel")
else:
    if n // 10 % 10 == 0: time.sleep(3600)            # until its limit of a few seconds (TILEWRIGHT_COMMAND_SECONDS)
    sys.stdout.write("@tw.kernel" + "x" * (1 << 20))
'''


def processes_below(pid):
    found, open_ = [], [pid]
    while open_:
        at = open_.pop()
        try:
            for task in os.listdir(f"/proc/{at}/task"):
                open_ += map(int, open(f"/proc/{at}/task/{task}/children").read().split())
        except OSError:
            continue
        found.append(at)
    return found


def status_of(pid):
    try:
        lines = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status"))
        return int(lines["VmRSS"].split()[0]) / 1024, len(os.listdir(f"/proc/{pid}/fd"))
    except (OSError, KeyError):
        return None


def gpu_megabytes():
    try:
        said = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=20)
        return sum(map(int, said.stdout.split())) if said.returncode == 0 else None
    except (OSError, subprocess.SubprocessError, ValueError):
        return None


def watch(process, samples, over):
    while not over.wait(1):
        own = status_of(process.pid)
        if own:
            samples.append({"seconds": time.monotonic(), "megabytes": own[0], "files": own[1], "processes": len(processes_below(process.pid))})


def steps_in(journal):
    database = sqlite3.connect(journal)
    try:
        return database.execute("SELECT count(*) FROM steps").fetchone()[0]
    except sqlite3.Error:
        return 0
    finally:
        database.close()


def grows(samples, key):
    """The median of the last fifth of a run over that of its middle fifth: by then the first long reply has been read, and its buffer is there for the others."""
    values = [s[key] for s in samples]
    if len(values) < 20:
        return 1.0
    fifth = len(values) // 5
    early, late = sorted(values[2 * fifth:3 * fifth])[fifth // 2], sorted(values[-fifth:])[fifth // 2]
    return late / max(early, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--candidates", type=int, default=1000)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser.add_argument("--seconds", type=float, default=0, help="stop the run after so much time (0: none)")
    parser.add_argument("--no-gpu", action="store_true")
    parser.add_argument("--json", help="write the result here")
    o = parser.parse_args()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tilewright-soak-"))
    (folder / "task.toml").write_text(cheats.TASKS["dbl"])
    (folder / "proposer.py").write_text(PROPOSER.format(cheats=str(ROOT / "tests" / "plan")))
    (folder / "tmp").mkdir()
    words = [o.program, "optimize", str(folder / "task.toml"), "--proposer", f"command:{sys.executable} {folder / 'proposer.py'}", "--plateau", "1000000", "--repairs", "20", "--stop-at", "1000",
             "--journal", str(folder / "journal.db"), "--memory", str(folder / "memory.db")]
    if o.no_gpu:
        words.append("--no-gpu")
    gpu_before = gpu_megabytes()
    environment = {**os.environ, "TMPDIR": str(folder / "tmp"), "TILEWRIGHT_STATE": str(folder / "state"), "OPENAI_API_KEY": "sk-soak-secret", "TILEWRIGHT_COMMAND_SECONDS": "2", "TILEWRIGHT_PASS": "SOAK_OFFSET"}
    began, runs, done, statuses = time.monotonic(), [], 0, set()
    while done < o.candidates and (not o.seconds or time.monotonic() - began < o.seconds):
        limits = ["--steps", str(o.candidates - done)]
        if o.seconds:
            limits += ["--seconds", str(max(1.0, o.seconds - (time.monotonic() - began)))]
        process = subprocess.Popen(words + limits, stdout=open(folder / "out", "a"), stderr=subprocess.STDOUT, env={**environment, "SOAK_OFFSET": str(done)})
        samples, over = [], threading.Event()
        watcher = threading.Thread(target=watch, args=(process, samples, over))
        watcher.start()
        try:
            statuses.add(process.wait())
        finally:  # an interrupted soak leaves nothing either
            process.kill()
            over.set()
            watcher.join()
        runs.append(samples)
        before, done = done, steps_in(folder / "journal.db")
        if done == before:
            break
    time.sleep(2)
    database = sqlite3.connect(folder / "journal.db")
    steps = database.execute("SELECT number, outcome, failure_class, message, source FROM steps ORDER BY run, number").fetchall()
    counts = database.execute("SELECT run, count(*), max(number) FROM steps GROUP BY run").fetchall()
    outcomes, classes = {}, {}
    for _, outcome, failure, _, _ in steps:
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        if failure:
            classes[failure] = classes.get(failure, 0) + 1
    names = {c.source: c.name for c in cheats.KERNELS}
    accepted_cheats = sorted({f"{names[source]} ({outcome}: {message[:80]})" for _, outcome, _, message, source in steps if outcome != "failed" and source in names})
    left = [p for p in map(int, filter(str.isdigit, os.listdir("/proc"))) if str(folder).encode() in (lambda f: open(f, "rb").read() if os.path.exists(f) else b"")(f"/proc/{p}/cmdline") and p != os.getpid()]
    folders = [p.name for p in (folder / "tmp").iterdir() if p.name != "nvidia"]  # the driver's own, of any program that starts CUDA
    gpu_after = gpu_megabytes()
    problems = []
    if not statuses <= {0, 1}:
        problems.append(f"runs ended with status {sorted(statuses)}: " + open(folder / "out").read()[-500:])
    if any(count != last + 1 for _, count, last in counts):
        problems.append("the journal lacks a step")
    if not o.seconds and len(steps) != o.candidates:
        problems.append(f"{len(steps)} steps of {o.candidates}: " + open(folder / "out").read()[-500:])
    if accepted_cheats:
        problems.append(f"cheats passed the gates: {accepted_cheats}")
    if left:
        problems.append(f"processes are left: {left}")
    if folders:
        problems.append(f"folders are left: {folders}")
    if gpu_before is not None and gpu_after is not None and gpu_after > gpu_before + 64:
        problems.append(f"the GPU has {gpu_before} MB in use before and {gpu_after} MB after")
    growth = {key: round(max(grows(r, key) for r in runs), 3) for key in ("megabytes", "files", "processes")}
    for key, most in (("megabytes", 1.3), ("files", 1.3)):
        if growth[key] > most:
            problems.append(f"{key} grow: {growth[key]:.2f} times over a run")
    samples = [s for r in runs for s in r]
    if "sk-soak-secret" in open(folder / "out").read() or any(b"sk-soak-secret" in p.read_bytes() for p in folder.rglob("*") if p.is_file()):
        problems.append("the key was written somewhere")
    result = {"kind": "tilewright soak", "candidates": len(steps), "runs": len(runs), "outcomes": outcomes, "failure_classes": classes, "seconds": round(time.monotonic() - began, 1), "gpu": not o.no_gpu and gpu_before is not None,
              "largest_megabytes": round(max((s["megabytes"] for s in samples), default=0)), "largest_files": max((s["files"] for s in samples), default=0), "most_processes": max((s["processes"] for s in samples), default=0),
              "growth": growth, "megabytes_of_longest_run": [round(s["megabytes"], 1) for s in max(runs, key=len)][::5], "gpu_megabytes": [gpu_before, gpu_after], "problems": problems}
    print(json.dumps(result, indent=1))
    if o.json:
        pathlib.Path(o.json).write_text(json.dumps(result, indent=1) + "\n")
    database.close()
    if not problems:
        shutil.rmtree(folder)
    else:
        print("kept:", folder, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
