"""Imports between kernel files, as the program and the package see them: verdicts, launches, plain Python."""
import json
import os
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")

PARTS = '''import tilewright as tw

N = tw.sizes("N")
FACTOR = 2.0


@tw.inline
def scaled(x):
    return x * FACTOR
'''
KERNEL = '''"""Kernels with parts."""
import tilewright as tw
from my_own import N, scaled
from tilewright import f32


@tw.kernel(target="sm_80", computes="Y[i] = X[i] * 2", threads=256)
def doubled(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    """Twice."""
    i = tw.grid(tw.cdiv(N, 256)) * 256
    tw.store(Y[i : i + 256], scaled(tw.load(X[i : i + 256], fill=0.0)))
'''
RUN = '''
import json, sys
import numpy as np
import tilewright
k = tilewright.load(sys.argv[1]).doubled
a, b = np.arange(1000, dtype=np.float32), np.empty(1000, np.float32)
k(a, b)
print(json.dumps([bool((b == 2 * a).all()), k.verdict]))
'''


def program(*words, **environment):
    return subprocess.run([PROGRAM, *map(str, words)], env={**os.environ, **environment}, capture_output=True, text=True, timeout=120)


def python(text, *words, **environment):
    return subprocess.run([sys.executable, "-c", text, *map(str, words)], env={**os.environ, "PYTHONPATH": os.path.join(ROOT, "python"), **environment}, capture_output=True, text=True, timeout=120)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "my_own.py").write_text(PARTS)
    (tmp_path / "kernel.py").write_text(KERNEL)
    return tmp_path


def test_a_verdict_is_of_the_file_and_of_what_it_imports(folder):
    pytest.importorskip("numpy")
    cache = {"TILEWRIGHT_CACHE": str(folder / "cache")}
    checked = program("check", folder / "kernel.py", "--audit", "0", **cache)
    assert checked.returncode == 0 and "doubled: proved" in checked.stdout, checked.stdout + checked.stderr
    known = python(RUN, folder / "kernel.py", **cache)
    assert json.loads(known.stdout) == [True, "proved"], known.stderr
    (folder / "my_own.py").write_text(PARTS.replace("x * FACTOR", "FACTOR * x"))
    changed = python(RUN, folder / "kernel.py", **cache)
    assert json.loads(changed.stdout) == [True, None], changed.stderr


def test_a_wrong_part_is_shown_in_its_own_file(folder):
    (folder / "my_own.py").write_text(PARTS.replace("    return x * FACTOR", "    y = x * 3.0\n    return y"))
    wrong = program("check", folder / "kernel.py", "--json")
    assert wrong.returncode == 1, wrong.stdout
    found = json.loads(wrong.stdout)["kernels"][0]
    places = [step["place"] for step in found["counterexample"]["trace"]]
    assert any(p.get("file") == "my_own.py" and p["line"] == 9 for p in places), places


def test_a_file_with_imports_runs_and_is_emitted_from_any_folder(folder):
    (folder / "my_own.py").write_text(PARTS.replace("    return x * FACTOR", "    y = x * FACTOR\n    return y"))
    assert program("run", folder / "kernel.py", "--set", "N=300").returncode == 0
    emitted = program("emit", folder / "kernel.py", "--to", "cuda")
    assert emitted.returncode == 0 and "my_own.py:9" in emitted.stdout, emitted.stdout[-2000:]


def test_the_parts_of_the_package_are_found_from_everywhere(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text('import tilewright as tw\nfrom gemm_parts import M, N\nfrom tilewright import f32\n\n\n@tw.kernel(target="sm_80", computes="Y[m, n] = X[m, n]", threads=128)\n'
                    "def copied(X: tw.Tensor(f32, M, N), Y: tw.Tensor(f32, M, N)):\n    m = tw.grid(M)\n    for c in tw.range(tw.cdiv(N, 512)):\n"
                    "        tw.store(Y[m, c * 512 : c * 512 + 512], tw.load(X[m, c * 512 : c * 512 + 512], fill=0.0))\n")
    checked = program("check", file)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    # Python finds them too; a kernel file that has no such name is nothing to it.
    plain = python("import sys, importlib.util as u\nimport tilewright\ns = u.spec_from_file_location('mine', sys.argv[1])\ns.loader.exec_module(u.module_from_spec(s))\n"
                   "try:\n    import softmax_sm90\nexcept ImportError:\n    print('none')", file)
    assert plain.stdout.strip() == "none", plain.stderr


def test_the_root_of_a_server_holds_for_imports(folder, tmp_path):
    root = folder / "root"
    root.mkdir()
    (root / "kernel.py").write_text(KERNEL)
    os.symlink(folder / "my_own.py", root / "my_own.py")
    asked = [{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
             {"jsonrpc": "2.0", "method": "notifications/initialized"},
             {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "check", "arguments": {"file": "kernel.py"}}}]
    with subprocess.Popen([PROGRAM, "mcp", "--root", str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        server.stdin.write("".join(json.dumps(a) + "\n" for a in asked))
        server.stdin.flush()
        answer = next(a for a in map(json.loads, server.stdout) if a.get("id") == 2)
        server.stdin.close()
    text = json.dumps(answer)
    assert "is not defined in the language" in text and "proved" not in text.replace("not_proved", ""), text[:2000]
