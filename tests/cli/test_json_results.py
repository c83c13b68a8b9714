"""With --json every command says one JSON object with a `schema` on standard output, whatever was wrong; file names may be any bytes."""
import json
import os
import pathlib
import subprocess

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")

KERNEL = '''import tilewright as tw
from tilewright import f32
N = tw.sizes("N")

@tw.kernel(target="sm_80", computes="Y[n] = X[n] * 2")
def k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    tw.store(Y[i], tw.load(X[i : i + 128], fill=0.0) * 2.0)
'''
ODD = b"n\xff\xfe.py"


def run(folder, *words):
    environment = {**os.environ, "TILEWRIGHT_STATE": str(folder / "state"), "TILEWRIGHT_HIDE": "driver,nvrtc"}
    return subprocess.run([PROGRAM, *[w if isinstance(w, bytes) else str(w) for w in words]], cwd=folder, capture_output=True, timeout=120, env=environment)


def said(folder, *words):
    done = run(folder, *words)
    assert done.returncode in (0, 1, 2, 3), (words, done.returncode, done.stderr)
    value = json.loads(done.stdout)
    assert value["schema"].startswith("tilewright "), (words, value)
    if value["schema"] == "tilewright error 1":
        assert value["exit_code"] == done.returncode and value["message"], (words, value)
    return done, value


@pytest.fixture
def files(tmp_path):
    (tmp_path / "k.py").write_text(KERNEL)
    (tmp_path / "bad.py").write_text(KERNEL.replace("tw.cdiv", "tw.cdib"))
    (tmp_path / "empty.py").write_text("")
    (tmp_path / "k.cu").write_text("#include <cute/tensor.hpp>\n__global__ void k(float* p) {}\n")
    with open(os.path.join(os.fsencode(tmp_path), ODD), "w") as f:
        f.write(KERNEL)
    return tmp_path


@pytest.mark.parametrize("file", ["k.py", "bad.py", "empty.py", "absent.py", ".", "/dev/zero", ODD])
@pytest.mark.parametrize("words", [["check", "--audit", 0], ["ir"], ["emit"], ["emit", "--to", "cute"], ["emit", "--to", "plan"], ["emit", "--to", "nothing"], ["emit", "--kernel", "nobody"], ["run", "--set", "N=300"], ["run"], ["run", "--set", "N=-1"]],
                         ids=lambda w: "-".join(map(str, w)))
def test_files_of_any_kind(files, words, file):
    done, value = said(files, words[0], file, *words[1:], "--json")
    if file == "bad.py" and words[0] == "emit" and "nothing" not in words:
        assert done.returncode == 1 and value["verdict"] == "rejected" and value["diagnostics"][0]["code"].startswith("TW"), value
        assert b"error[TW" in done.stderr and "error[TW" in value["message"]


def test_a_result_begins_with_its_schema_and_verdict(files):
    for words, verdict in ((["check", "k.py", "--audit", 0], "proved"), (["run", "k.py", "--set", "N=300"], "right"), (["emit", "k.py"], "fine")):
        _, value = said(files, *words, "--json")
        assert list(value)[:2] == ["schema", "verdict"] and value["verdict"] == verdict, value


@pytest.mark.parametrize("command", ["bench", "tune", "mutate", "crosscheck"])
def test_json_without_its_file(files, command):
    done, value = said(files, command, *([] if command == "crosscheck" else ["k.py"]), "--json")
    assert done.returncode == 2 and value["schema"] == "tilewright error 1" and "--json FILE" in value["fix"], value


@pytest.mark.parametrize("words", [
    ["check", "k.cu"], ["runs"], ["show", "last"], ["show", "nobody"], ["knowledge", "list"], ["knowledge", "search", "pipeline"], ["knowledge", "search", "zzzz"], ["knowledge", "show", "nothing"], ["explain"], ["explain", "TW2001"], ["explain", "TW9999"],
    ["layout", "(8,8):(8,1)"], ["layout", "(("], ["layout", b"\xff"], ["doctor"], ["target", "dump"], ["compile", "absent.cu"], ["generate", "absent.json"], ["submit", "absent.toml", "k.py"], ["replay", "absent"], ["attach", "absent"],
    ["check"], ["check", "k.py", "--nonsense"], ["nonsense"], ["emit", "k.py", "-o", "/nonexistent/x"], ["emit", "k.py", "--to", "cute", "-o", "/proc/x"], ["run", "k.py", "--set", "N=5", "--target", "gpu"], ["run", "k.py", "--set", "N=5", "--schedules", 99999999], ["run", "k.py", "--set", "N=5", "--blocks", 0],
    ["check", "k.py", "--limit-megabytes", 1], ["ir", "k.py", "--limit-megabytes", 1], ["emit", "k.py", "--limit-megabytes", 1]], ids=lambda w: "-".join(map(str, w)))
def test_commands_and_their_errors(files, words):
    said(files, *words, "--json")


@pytest.mark.parametrize("words", [["bench", "k.py", "--set", "N=300"], ["bench", "bad.py", "--set", "N=300"], ["tune", "bad.py", "--set", "N=300"], ["mutate", "bad.py"], ["mutate", "k.py"], ["crosscheck", "--count", 1]], ids=lambda w: "-".join(map(str, w)))
def test_json_on_standard_output(files, words):
    for option in (["--json", "-"], ["--json=-"]):
        said(files, *words, *option)
    assert not (files / "-").exists() and not (files / "-.part").exists(), "'-' is no file"
