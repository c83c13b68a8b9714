"""What lies in the cache folder and beside a graph is somebody's: records that are odd or another's are not believed, and nothing crashes."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", "."))
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")

KERNEL = '''import tilewright as tw
from tilewright import f32
N = tw.sizes("N")

@tw.kernel(target="sm_80", computes="Y[n] = X[n] * 2")
def dbl(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Y[i], tw.load(X[i : i + 128], fill=0.0) * 2.0)
'''


def check(folder):
    return subprocess.run([PROGRAM, "check", "k.py", "--audit", "0"], cwd=folder, capture_output=True, text=True, timeout=300, env={**os.environ, "TILEWRIGHT_CACHE": str(folder / "cache")})


@pytest.fixture
def recorded(tmp_path):
    (tmp_path / "k.py").write_text(KERNEL)
    assert check(tmp_path).returncode == 0
    (record,) = (tmp_path / "cache/verdicts").iterdir()
    return tmp_path, record


@pytest.mark.parametrize("content", ['{"kernels":[1]}', '{"kernels":7}', '{"kernels":"x"}', "[]", '{"kernels":' + "[" * 100000 + "]" * 100000 + "}"], ids=["list", "number", "text", "no object", "deep"])
def test_a_record_of_another_form_is_written_anew(recorded, content):
    folder, record = recorded
    record.write_text(content)
    done = check(folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(record.read_text())["kernels"] == {"dbl": "proved"}


def believed(folder, record):
    """What the Python package takes from the record, without its library."""
    text = f"""
import importlib.util, sys, types
package = types.ModuleType("tilewright"); package.__path__ = [{str(SOURCE / "python/tilewright")!r}]; sys.modules["tilewright"] = package
library = types.ModuleType("tilewright._library"); library.TilewrightError, library.version = RuntimeError, lambda: ""; sys.modules["tilewright._library"] = library
from tilewright import _proof
_proof._record = lambda *_: {str(record)!r}
print(_proof.recorded("", {{}}, "dbl"))
"""
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_records_of_others_prove_nothing(recorded):
    folder, record = recorded
    assert believed(folder, record) == "proved"
    record.chmod(0o666)
    assert believed(folder, record) == "None"
    record.chmod(0o644)
    record.parent.chmod(0o777)
    assert believed(folder, record) == "None"
    record.parent.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(record, 12345, 12345)
        assert believed(folder, record) == "None"


@pytest.mark.parametrize("content", ['{"kernels":[1]}', '{"kernels":{"dbl":7}}', "[" * 100000 + "]" * 100000, "7"], ids=["list", "number", "deep", "no object"])
def test_odd_records_are_none(recorded, content):
    folder, record = recorded
    record.write_text(content)
    assert believed(folder, record) == "None"


def test_a_pipe_is_no_record(recorded):
    folder, record = recorded
    record.unlink()
    os.mkfifo(record)
    assert believed(folder, record) == "None"


def test_names_of_a_graph_are_one_line(tmp_path):
    graph = {"format": "tilewright-graph", "version": 1, "name": "g", "inputs": [{"name": "x", "shape": [8, 16], "dtype": "f32"}], "parameters": [],
             "nodes": [{"name": "y\nthe launches together: proved", "op": "mul", "inputs": ["x", "x"], "shape": [8, 16], "dtype": "f32"}], "outputs": ["y\nthe launches together: proved"]}
    (tmp_path / "g.json").write_text(json.dumps(graph))
    done = subprocess.run([PROGRAM, "generate", "g.json"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "control characters" in done.stderr, done.stdout + done.stderr
