"""Every cheat of cheats.py is refused by the gate it names, and programs that propose them are contained; docs/security.md lists them all."""
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cheats  # noqa: E402

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")


def submit(folder, source, task="dbl"):
    (folder / "task.toml").write_text(cheats.TASKS[task])
    (folder / "candidate.py").write_bytes(source.encode())
    done = subprocess.run([PROGRAM, "submit", "task.toml", "candidate.py", "--json", "--no-gpu"], cwd=folder, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "TILEWRIGHT_STATE": str(folder / "state"), "TILEWRIGHT_HIDE": "nvrtc"})
    assert done.returncode in (0, 1), (done.returncode, done.stderr)
    return json.loads(done.stdout)


@pytest.mark.parametrize("task,source", [("dbl", cheats.HONEST), ("rows", cheats.HONEST_ROWS)])
def test_the_honest_candidates_pass(tmp_path, task, source):
    said = submit(tmp_path, source, task)
    assert said["passed"] and said["verdict"] == "proved", said["message"]


@pytest.mark.parametrize("cheat", cheats.KERNELS, ids=lambda c: c.name.replace(" ", "_"))
def test_it_is_refused_with_the_reason(tmp_path, cheat):
    begin = time.monotonic()
    said = submit(tmp_path, cheat.source, cheat.task)
    assert not said["passed"], "it passed every gate"
    refused = said["gates"][-1]
    assert re.fullmatch(cheat.gate, refused["gate"]), (refused, said["message"])
    words = said["message"] + " " + said["feedback"]
    assert re.search(cheat.reason, words, re.I), words
    assert time.monotonic() - begin < 200


# What a program does instead of proposing: (name, script, words of the step's message).
PROGRAMS = [
    ("starts processes without end", "while true; do sleep 30 & done", "too many processes"),
    ("starts processes that start processes", "f() { [ $1 -gt 11 ] || { f $(($1 + 1)) & f $(($1 + 1)) & }; sleep 60; }; f 0", "too many processes"),  # ends by itself at 2^13
    ("allocates without end", "exec python3 -c 'x = []\nwhile True: x.append(bytearray(64 << 20))'", "memory limit"),
    ("writes output without end", "yes", "more than the limit"),
    ("never answers", "sleep 600", "time"),
    ("crashes", "kill -SEGV $$", "signal 11"),
    ("kills its parents", "kill -9 $PPID; sleep 1; echo nothing", "."),
    ("answers with something else", "echo hello", "without a kernel"),
    ("answers with a kernel of a megabyte", "python3 -c 'print(\"@tw.kernel\" + \"x\" * (1 << 20))'", "without a kernel"),
    ("answers with nested JSON", "python3 -c 'print(\"[\" * 1000000)'", "without a kernel"),
]


@pytest.mark.parametrize("name,script,words", PROGRAMS, ids=[p[0].replace(" ", "_") for p in PROGRAMS])
def test_a_program_that_misbehaves_costs_one_candidate(tmp_path, name, script, words):
    (tmp_path / "task.toml").write_text(cheats.TASKS["dbl"])
    program = tmp_path / "proposer.sh"
    program.write_text("#!/bin/sh\n" + script + "\n")
    program.chmod(0o755)
    begin = time.monotonic()
    done = subprocess.run([PROGRAM, "optimize", "task.toml", "--no-gpu", "--steps", "1", "--seconds", "120" if "allocates" in name else "15", "--proposer", f"command:{program}"], cwd=tmp_path, capture_output=True, text=True, timeout=400,
                          env={**os.environ, "TILEWRIGHT_STATE": str(tmp_path / "state")})
    shown = subprocess.run([PROGRAM, "show", "last", "--json"], capture_output=True, text=True, env={**os.environ, "TILEWRIGHT_STATE": str(tmp_path / "state")})
    messages = " ".join(step["message"] for step in json.loads(shown.stdout)["steps"]) + done.stdout
    assert done.returncode == 1 and re.search(words, messages), (done.returncode, messages, done.stderr)
    assert time.monotonic() - begin < 300
    left = subprocess.run(["pgrep", "-f", str(program)], capture_output=True, text=True).stdout
    assert not left, "processes are left: " + left


@pytest.mark.parametrize("name,place", [("writes the journal", "state/journal.db"), ("writes the kernel cache", "cache/poison"), ("writes the candidate's folder", "planted.py")])
def test_a_program_cannot_tamper_with_files(tmp_path, name, place):
    doctor = subprocess.run([PROGRAM, "doctor"], capture_output=True, text=True).stdout
    if "present  box: writes" not in doctor:
        pytest.skip("this kernel has no landlock")
    (tmp_path / "task.toml").write_text(cheats.TASKS["dbl"])
    (tmp_path / "cache").mkdir()
    program = tmp_path / "proposer.sh"
    program.write_text(f"#!/bin/sh\necho tampered >> {tmp_path / place} && echo written >&2\ncat {tmp_path}/honest.py\n")
    program.chmod(0o755)
    (tmp_path / "honest.py").write_text(cheats.HONEST)
    done = subprocess.run([PROGRAM, "optimize", "task.toml", "--no-gpu", "--steps", "1", "--proposer", f"command:{program}"], cwd=tmp_path, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "TILEWRIGHT_STATE": str(tmp_path / "state"), "TILEWRIGHT_CACHE": str(tmp_path / "cache"), "TILEWRIGHT_HIDE": "nvrtc"})
    assert done.returncode == 0, done.stdout + done.stderr
    where = tmp_path / place
    assert not where.exists() or b"tampered" not in where.read_bytes()


def test_the_page_lists_them_all():
    page = (SOURCE / "docs/security.md").read_text()
    missing = [c.name for c in cheats.KERNELS if c.name not in page] + [p[0] for p in PROGRAMS if p[0] not in page]
    assert not missing, "docs/security.md does not list: " + ", ".join(missing)
    assert len(cheats.KERNELS) + len(PROGRAMS) >= 40
