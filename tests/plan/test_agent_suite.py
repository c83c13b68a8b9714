"""The suite of the agent: its counterparts exist, it compares and tabulates, and a cut leaves what was done."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(SOURCE / "bench"))
import agent_suite  # noqa: E402

needs_program = pytest.mark.skipif(not PROGRAM, reason="the program is not built")


@needs_program
@pytest.mark.parametrize("task", agent_suite.TASKS)
def test_every_counterpart_is_a_shipped_kernel(task):
    theirs, shared = agent_suite.counterparts(task)
    assert (SOURCE / "tasks" / f"{task}.toml").exists()
    for c in theirs:
        found = subprocess.run([PROGRAM, "emit", str(SOURCE / c["file"]), "--kernel", c["kernel"]], capture_output=True, text=True, timeout=120)
        assert found.returncode == 0, (c, found.stderr)
    if shared:   # rows of an expert lie between its offsets
        starts, expert = shared["starts"], shared["expert"]
        assert starts[0] == 0 and starts[-1] == len(expert) and all(expert[starts[e] : starts[e + 1]] == [e] * (starts[e + 1] - starts[e]) for e in range(len(starts) - 1))


def suite(folder, *words):
    environment = {**os.environ, "TILEWRIGHT_STATE": str(folder / "state"), "TILEWRIGHT_PROGRAM": str(SOURCE / "tests/plan/fake_gpu.py"), "FAKE_GPU_COUNT": str(folder / "count"), "TILEWRIGHT_HIDE": "nvrtc",
                   "TILEWRIGHT_PASS": "FAKE_GPU_COUNT", "TILEWRIGHT_BOX_WRITE": str(folder)}  # the worker is in its box
    return subprocess.Popen([sys.executable, str(SOURCE / "bench/agent_suite.py"), "all", "--program", PROGRAM, "--out", str(folder / "out"), *words], env=environment, stdout=subprocess.PIPE, text=True)


@needs_program
def test_runs_comparison_and_table(tmp_path):
    process = suite(tmp_path, "--tasks", "gelu,softmax", "--steps", "4", "--options=--stop-at 99")
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0, said
    compared = json.loads((tmp_path / "out/compare.json").read_text())
    assert all(len(entry["us"]) == 4 for task in compared.values() for entry in task.values()) and set(compared) == {"gelu", "softmax"}
    table = (tmp_path / "out/table.md").read_text()
    assert re.search(r"^\| gelu \| 4 \| \d+ \|.*kernels/activations.py gelu.*\d+% \|$", table, re.M), table
    assert "NOT all proved" not in table


@needs_program
def test_a_cut_leaves_the_journals(tmp_path):
    process = suite(tmp_path, "--tasks", "gemm", "--options=--stop-at 99 --plateau 99")
    for _ in range(200):
        time.sleep(0.1)
        if (tmp_path / "count").exists() and int((tmp_path / "count").read_text() or 0) > 3:
            break
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert len(json.loads((tmp_path / "out/gemm.json").read_text())["steps"]) >= 1 and "| gemm |" in said
