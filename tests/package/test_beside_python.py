"""Kernels in a user's own file: read by the program and by the package, with a verdict that both know."""
import os
import subprocess
import sys
import textwrap
import warnings

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))
PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")
np = pytest.importorskip("numpy")

MODEL = '''
"""A program with a kernel in it."""
from __future__ import annotations
import json, os
import numpy as np
import tilewright as tw
from tilewright import f32

N = tw.sizes("N")
FACTOR = 2.0
x = np.zeros(3)          # shares its name with a variable of the kernel


class Block:
    """@tw.kernel in a string is none
def neither(): pass
    """
    def forward(self, x):
        return (x +
                1)


@tw.inline
def scaled(x):
    return x * FACTOR


@tw.kernel(target="sm_80", computes="Y[i] = X[i] * FACTOR", threads=256)
def doubled(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N), BLOCK: tw.const(256, 512) = 256):
    i = tw.grid(tw.cdiv(N, BLOCK)) * BLOCK
    x = tw.load(X[i : i + BLOCK], fill=0.0)
    tw.store(Y[i : i + BLOCK], scaled(x))


if __name__ == "__main__":
    a, b = np.arange(1000, dtype=np.float32), np.empty(1000, np.float32)
    doubled(a, b)
    print(json.dumps([bool((b == 2 * a).all()), doubled.verdict]))
'''


def script(path, **environment):
    return subprocess.run([sys.executable, "-W", "always", str(path)], env={**os.environ, "PYTHONPATH": os.path.join(ROOT, "python"), **environment}, capture_output=True, text=True, timeout=120)


def test_the_same_file_is_checked_run_and_required(tmp_path):
    file, cache = tmp_path / "model.py", str(tmp_path / "cache")
    file.write_text(MODEL)
    first = script(file, TILEWRIGHT_CACHE=cache)
    assert first.stdout.strip() == "[true, null]", first.stderr
    assert first.stderr.count("UnprovedKernelWarning") == 1
    checked = subprocess.run([PROGRAM, "check", str(file), "--audit", "0"], env={**os.environ, "TILEWRIGHT_CACHE": cache}, capture_output=True, text=True, timeout=120)
    assert checked.returncode == 0 and "doubled: proved" in checked.stdout
    again = script(file, TILEWRIGHT_CACHE=cache, TILEWRIGHT_REQUIRE_PROOF="1")
    assert again.stdout.strip() == '[true, "proved"]' and "Warning" not in again.stderr


def test_what_is_not_proved_is_refused_on_request(tmp_path):
    file = tmp_path / "wrong.py"
    file.write_text(MODEL.replace("return x * FACTOR", "return x * 3.0"))
    done = script(file, TILEWRIGHT_CACHE=str(tmp_path / "cache"), TILEWRIGHT_REQUIRE_PROOF="1")
    assert done.returncode != 0 and "is violated, and TILEWRIGHT_REQUIRE_PROOF is set" in done.stderr


def test_places_are_those_of_the_file(tmp_path):
    file = tmp_path / "bad.py"
    file.write_text(MODEL.replace("tw.cdiv(N, BLOCK)", "tw.cdif(N, BLOCK)"))
    done = subprocess.run([PROGRAM, "check", str(file)], capture_output=True, text=True, timeout=120)
    line = 1 + file.read_text().splitlines().index("    i = tw.grid(tw.cdif(N, BLOCK)) * BLOCK")
    assert f"bad.py:{line}:" in done.stderr + done.stdout and "cdiv" in done.stderr + done.stdout


def test_check_from_python(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    import tilewright

    module = tilewright.loads(textwrap.dedent("""
        import tilewright as tw
        from tilewright import f32
        N = tw.sizes("N")

        @tw.kernel(target="sm_80", computes="Y[i] = X[i] + 1.0", threads=128)
        def more(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
            i = tw.grid(tw.cdiv(N, 128)) * 128
            tw.store(Y[i : i + 128], tw.load(X[i : i + 128], fill=0.0) + 1.0)
    """))
    result = module.more.check(audit=0)
    assert result and result.verdict == "proved" and "more: proved" in result.text
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module.more(np.ones(5, np.float32), np.empty(5, np.float32))


@pytest.mark.parametrize("text", ["import os\nimport tilewright as tw\n" + "x = (" * 3000, "import os\nimport tilewright as tw\n" + "\n".join(f"a{i} = a{i + 1}" for i in range(20000)),
                                  "import os\nimport tilewright as tw\n'''" + "@tw.kernel\n" * 1000, "import os\nimport tilewright as tw\n@tw.kernel\n", "import os, tilewright as tw\n\\", ""],
                         ids=["open brackets", "a chain", "an open string", "a lone decorator", "a backslash", "nothing"])
def test_odd_files_get_an_answer(tmp_path, text):
    file = tmp_path / "odd.py"
    file.write_text(text)
    done = subprocess.run([PROGRAM, "check", str(file)], capture_output=True, text=True, timeout=20)
    assert done.returncode in (1, 2), done.stdout + done.stderr
