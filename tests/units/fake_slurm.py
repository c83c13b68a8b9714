#!/usr/bin/env python3
"""sbatch, squeue, scancel and sacct of a Slurm that is not there: elements of an array are processes of this machine.

Called by the name it is linked under. $FAKE_SLURM is its folder; $FAKE_SLURM/trouble may hold orders:
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
        marker = folder / str(element)
        marker.write_text("0")
        subprocess.Popen([sys.executable, __file__, "element", str(folder), str(element), output], start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    print(job)


def element():
    folder, number, output = pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    with open(output, "w") as out:
        process = subprocess.Popen(["/bin/sh", str(folder / "script")], stdout=out, stderr=out, env={**os.environ, "SLURM_ARRAY_TASK_ID": number, "SLURMD_NODENAME": f"fake{int(number) % 2}"})
        (folder / number).write_text(str(process.pid))
        trouble = ROOT / f"kill-{number}"
        if trouble.exists():
            trouble.unlink()
            time.sleep(0.15)
            process.kill()
        process.wait()
    (folder / number).unlink(missing_ok=True)


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


{"sbatch": sbatch, "squeue": squeue, "scancel": scancel, "sacct": lambda: sys.exit("no accounting")}.get(pathlib.Path(sys.argv[0]).name, element)()
