#!/usr/bin/env python3
"""sbatch, squeue, scancel and sacct of a Slurm that is not there: elements of an array are processes of this machine.

Called by the name it is linked under; `fake_slurm.py daemon` starts what is queued. $FAKE_SLURM is its folder; $FAKE_SLURM/trouble may hold orders:
  kill N     the process of element N is killed with -9 soon after its start, the first time
  deaf N     squeue fails N times
"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(os.environ["FAKE_SLURM"])


def order(word):
    """The number of an order that has not been obeyed, or None; obeyed once."""
    file = ROOT / "trouble"
    lines = file.read_text().splitlines() if file.exists() else []
    for i, line in enumerate(lines):
        if line.startswith(word + " "):
            number = int(line.split()[1])
            rest = lines[:i] + ([f"{word} {number - 1}"] if word == "deaf" and number > 1 else []) + lines[i + 1:]
            file.write_text("\n".join(rest) + "\n")
            return number
    return None


def elements(text):
    for part in text.split("%")[0].split(","):
        low, _, high = part.partition("-")
        yield from range(int(low), int(high or low) + 1)


def sbatch():
    script = sys.stdin.read()
    assert script.startswith("#!/bin/sh\n"), script
    with open(ROOT / "sbatch.log", "a") as log:
        log.write(" ".join(sys.argv[1:]) + "\n")
    options = dict(re.match(r"--([^=]+)=?(.*)", w).groups() for w in sys.argv[1:])
    job = len(list(ROOT.glob("job-*"))) + 1
    folder = ROOT / f"job-{job}"
    folder.mkdir()
    (folder / "script").write_text(script)
    for element in elements(options["array"]):
        output = options["output"].replace("%A", str(job)).replace("%a", str(element))
        # The marker holds the process's id while it runs and is gone afterwards: what squeue shows.
        (folder / str(element)).write_text("0")
        (folder / f"output-{element}").write_text(output)
    (folder / "queued").touch()
    print(job)


def daemon():
    """What is started by sbatch itself would end with it."""
    running = {}
    while ROOT.exists():
        for queued in ROOT.glob("job-*/queued"):
            for output in queued.parent.glob("output-*"):
                number = output.name[len("output-"):]
                out = open(output.read_text(), "w")
                process = subprocess.Popen(["/bin/sh", str(queued.parent / "script")], stdout=out, stderr=out, start_new_session=True,
                                           env={**os.environ, "SLURM_ARRAY_TASK_ID": number, "SLURMD_NODENAME": f"fake{int(number) % 2}"})
                (queued.parent / number).write_text(str(process.pid))
                trouble = ROOT / f"kill-{number}"
                if trouble.exists():
                    trouble.unlink()
                    time.sleep(0.1)
                    process.kill()
                running[process] = queued.parent / number
            queued.unlink()
        for process in [p for p in running if p.poll() is not None]:
            running.pop(process).unlink(missing_ok=True)
        time.sleep(0.02)


def squeue():
    if order("deaf") is not None:
        sys.exit("slurm_load_jobs error: Unable to contact slurm controller")
    jobs = next(w for w in sys.argv if w.startswith("--jobs=")).split("=")[1].split(",")
    for job in jobs:
        for marker in sorted((ROOT / f"job-{job}").glob("[0-9]*")):
            print(marker.name, "R")


def scancel():
    for job in sys.argv[1:]:
        for marker in (ROOT / f"job-{job}").glob("[0-9]*"):
            pid = int(marker.read_text() or 0)
            if pid:
                os.kill(pid, signal.SIGKILL)
            marker.unlink(missing_ok=True)


if len(sys.argv) > 1 and sys.argv[1] == "daemon":
    daemon()
else:
    {"sbatch": sbatch, "squeue": squeue, "scancel": scancel, "sacct": lambda: sys.exit("no accounting")}[pathlib.Path(sys.argv[0]).name]()
