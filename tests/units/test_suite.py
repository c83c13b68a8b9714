"""`tilewright import` and `tilewright suite`: what they refuse anywhere, and where torch is installed, tasks of our own making."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")

TASK = """import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale
        self.bias = nn.Parameter(torch.randn(24))

    def forward(self, x):
        return torch.relu(x * self.scale + self.bias)


def get_inputs():
    return [torch.randn(8, 24)]


def get_init_inputs():
    return [2.0]
"""


def torch_python():
    for python in (os.environ.get("TILEWRIGHT_TORCH_PYTHON"), "python3", sys.executable):
        if python and subprocess.run([python, "-c", "import torch"], capture_output=True).returncode == 0:
            return python
    return None


needs_torch = pytest.mark.skipif(torch_python() is None, reason="torch is not installed")


def tilewright(tmp_path, *words, **variables):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=300, cwd=tmp_path, env={**os.environ, **variables})


@pytest.fixture
def tasks(tmp_path):
    (tmp_path / "bench/level1").mkdir(parents=True)
    (tmp_path / "bench/level1/3_scaled.py").write_text(TASK)
    (tmp_path / "bench/level1/12_shifted.py").write_text(TASK.replace("relu", "sigmoid"))
    return tmp_path / "bench"


def test_bad_usage_is_said(tmp_path, tasks):
    for words, said in ((("import", "nothing.py"), "nothing.py"), (("suite", "kernelbench", "nowhere"), "level1"), (("suite", "other", tasks), "no suite 'other'"),
                        (("suite", "kernelbench", tasks, "--level", 1, "--tasks", "3-x"), "1,5-9"), (("suite", "kernelbench", tasks, "--level", 1, "--tasks", "99"), "no units")):
        ran = tilewright(tmp_path, *words)
        assert ran.returncode == 2 and said in ran.stderr, (words, ran.returncode, ran.stderr)


def test_a_python_without_torch_is_said(tmp_path, tasks):
    fake = tmp_path / "python"
    fake.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'torch'\" >&2\nexit 1\n")
    fake.chmod(0o755)
    ran = tilewright(tmp_path, "import", tasks / "level1/3_scaled.py", TILEWRIGHT_PYTHON=str(fake))
    assert ran.returncode == 2 and "TILEWRIGHT_PYTHON" in ran.stderr
    # A node without torch gives no result: the unit is tried again, and reported.
    ran = tilewright(tmp_path, "suite", "kernelbench", tasks, "--level", 1, "--tasks", 3, "-o", "out", TILEWRIGHT_PYTHON=str(fake))
    assert ran.returncode in (1, 3) and "torch" in ran.stderr
    assert not list((tmp_path / "out/units/results").iterdir())


@needs_torch
def test_a_task_is_imported_proved_and_resumed(tmp_path, tasks):
    python = torch_python()
    ran = tilewright(tmp_path, "import", tasks / "level1/3_scaled.py", "-o", "graph.json", TILEWRIGHT_PYTHON=python)
    assert ran.returncode == 0, ran.stderr
    assert json.loads((tmp_path / "graph.json").read_text())["format"] == "tilewright-graph"
    words = ("suite", "kernelbench", tasks, "--level", 1, "--no-gpu", "--emit-solutions", "-o", "out")
    ran = tilewright(tmp_path, *words, TILEWRIGHT_PYTHON=python)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    table = json.loads((tmp_path / "out/level1.json").read_text())
    assert [t["task"] for t in table["tasks"]] == ["level1/3_scaled.py", "level1/12_shifted.py"] and all(t["proved"] for t in table["tasks"])
    assert "class ModelNew" in (tmp_path / "out/solutions/level1/3.py").read_text() and (tmp_path / "out/L1-12/kernels.py").exists()
    # A solution needs torch alone: a Python without paths to the package takes it, and it has the kernels' CUDA C++.
    code = "scope = {}; exec(open('out/solutions/level1/3.py').read(), scope); scope['ModelNew'](*scope['get_init_inputs']()); print(scope['_PROVED'][0], scope['_PLAN']['kernels'][0]['source'].count('__global__'))"
    alone = subprocess.run([python, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert alone.stdout.split() == ["True", "1"], alone.stderr
    assert "3_scaled" in (tmp_path / "out/index.html").read_text()
    stamps = {f: f.stat().st_mtime_ns for f in (tmp_path / "out/units/results").iterdir()}
    assert tilewright(tmp_path, *words, TILEWRIGHT_PYTHON=python).returncode == 0
    assert stamps == {f: f.stat().st_mtime_ns for f in (tmp_path / "out/units/results").iterdir()}


@needs_torch
def test_an_imported_file_writes_nothing_and_reaches_no_network(tmp_path, tasks):
    evil = tasks / "level1/4_evil.py"
    evil.write_text("import pathlib, socket\ntry:\n    pathlib.Path(%r).write_text('x')\nexcept OSError:\n    pass\ntry:\n    socket.socket(socket.AF_INET)\n    raise SystemExit('a socket')\nexcept OSError:\n    pass\n"
                    % str(SOURCE / "owned") + TASK)
    ran = tilewright(tmp_path, "import", evil, "-o", "g.json", TILEWRIGHT_PYTHON=torch_python())
    assert not (SOURCE / "owned").exists()
    assert ran.returncode == 0 and "a socket" not in ran.stderr, ran.stderr
