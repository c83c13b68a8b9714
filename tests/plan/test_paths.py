"""Where the built-in proposer gets without a GPU: the decisions of the last kernel, every accepted one proved."""
import json
import os
import pathlib
import re
import subprocess

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
needs_program = pytest.mark.skipif(not PROGRAM, reason="the program is not built")

RING = {"mma": "wgmma", "copy": "tma", "roles": "1", "persistent": "1", "consumers": "2", "keep": "1"}
PATHS = {
    "grouped_gemm": {**RING, "groups": "tiles", "turned": "1", "bm": "216", "bn": "128", "store": "staged"},   # 8 groups of 1024 rows: five tiles of 216 hold 1024 and two deviations
    "gemm_nn": {**RING, "bm": "128", "bn": "256", "store": "tma", "defer": "1", "cluster": "2"},
}


@needs_program
@pytest.mark.parametrize("task", PATHS)
def test_the_path_reaches_the_structure(tmp_path, task):
    environment = {**os.environ, "TILEWRIGHT_STATE": str(tmp_path), "TILEWRIGHT_HIDE": "nvrtc"}
    done = subprocess.run([PROGRAM, "optimize", SOURCE / f"tasks/{task}.toml", "--no-gpu"], capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0 and "NOT measured: no GPU here" in done.stdout, done.stdout + done.stderr
    steps = json.loads(subprocess.run([PROGRAM, "show", "last", "--json"], capture_output=True, text=True, env=environment, check=True).stdout)["steps"]
    taken = [s for s in steps if s["outcome"] == "accepted"]
    assert len(steps) <= 40 and all(s["verdict"] == "proved" for s in taken)
    sketch = dict(word.split("=") for word in re.search(r"^# sketch: contraction (.*)$", taken[-1]["source"], re.M).group(1).split())
    assert {name: sketch.get(name) for name in PATHS[task]} == PATHS[task]
