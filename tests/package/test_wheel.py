"""The wheel in a clean virtual environment: the tutorial's commands, a check, kernels on CPU arrays, an optimisation without a GPU."""
import csv
import importlib.util
import io
import os
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("TILEWRIGHT_BUILD")
pytestmark = pytest.mark.skipif(not BUILD or not os.path.exists(os.path.join(BUILD, "bin", "tilewright")), reason="the program is not built")
_spec = importlib.util.spec_from_file_location("console_blocks", os.path.join(ROOT, "tests", "docs", "test_console_blocks.py"))
console = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(console)


def run(words, **options):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, **options)
    assert done.returncode == 0, f"{words}\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run([os.path.join(ROOT, "scripts", "make_dist.sh"), BUILD, str(folder / "tilewright")], cwd=ROOT)
    run([sys.executable, os.path.join(ROOT, "scripts", "make_wheel.py"), str(folder / "tilewright"), str(folder)])
    found = [f for f in os.listdir(folder) if f.endswith(".whl")]
    assert len(found) == 1
    return folder / found[0]


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A virtual environment with nothing but the wheel; the folder of the package's files."""
    folder = tmp_path_factory.mktemp("environment")
    run([sys.executable, "-m", "venv", str(folder)])
    python = str(folder / "bin" / "python")
    run([python, "-m", "pip", "install", "--no-index", "--no-deps", "--disable-pip-version-check", str(wheel)])
    # Nothing of the source tree may help.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TILEWRIGHT") and k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment.update(PATH=f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", TILEWRIGHT_CACHE=str(folder / "cache"), TILEWRIGHT_STATE=str(folder / "state"), HOME=str(folder))
    root = run([python, "-c", "from tilewright import _paths; print(_paths.root())"], env=environment, cwd=folder).strip()
    assert root.startswith(str(folder))
    return python, environment, root


def test_the_record_holds_every_file(wheel):
    with zipfile.ZipFile(wheel) as z:
        names = z.namelist()
        record = next(n for n in names if n.endswith(".dist-info/RECORD"))
        listed = [row[0] for row in csv.reader(io.StringIO(z.read(record).decode()))]
    assert sorted(listed) == sorted(names)
    for wanted in ("tilewright/ops.py", "tilewright/py.typed", "tilewright/_dist/bin/tilewright", "tilewright/_dist/lib/libtilewright.so", "tilewright/_dist/kernels/gemm_sm90.py",
                   "tilewright/_dist/kernels/dispatch.json", "tilewright/_dist/docs/tutorial.md", "tilewright/_dist/include/tilewright/capi.h", "tilewright/_dist/examples/scans.py",
                   "tilewright/_dist/bench/suites/gemm.json"):
        assert wanted in names
    assert any(re.match(r"tilewright/_dist/lib/libz3\.so", n) for n in names)
    assert os.path.getsize(wheel) < 30e6
    assert re.search(r"-py3-none-manylinux_2_\d+_x86_64\.whl$", str(wheel))


def tutorial():
    with open(os.path.join(ROOT, "docs", "tutorial.md"), encoding="utf-8") as f:
        text = f.read()
    for match in re.finditer(r"^```console\n(.*?)^```$", text, re.S | re.M):
        yield pytest.param(match.group(1), id=str(text[:match.start()].count("\n") + 1))


@pytest.mark.parametrize("block", tutorial())
def test_the_tutorial(installed, tmp_path, block):
    _, environment, root = installed
    shutil.copytree(os.path.join(root, "kernels"), tmp_path / "kernels")
    for command, expected in console.commands(block):
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        actual = [console.masked(line) for line in done.stdout.splitlines() if not line.startswith("emulating, ")]
        assert console.matches([console.masked(line) for line in expected], actual), f"$ {command}\n{done.stdout}"


def test_kernels_by_name_without_numpy(installed, tmp_path):
    python, environment, _ = installed
    said = run([python, "-c", "import tilewright as tw; m = tw.load('attention_sm90.py', D=256); print(m.attention, tw.version()); print(len(tw.load('softmax_sm90').softmax.source()))"],
               env=environment, cwd=tmp_path)
    assert "<kernel attention(" in said


def test_doctor_and_the_documents(installed, tmp_path):
    _, environment, _ = installed
    subprocess.run(["tilewright", "doctor"], env=environment, cwd=tmp_path, check=False, stdout=subprocess.PIPE)
    assert "wgmma" in run(["tilewright", "reference", "wgmma"], env=environment, cwd=tmp_path)
    assert run(["tilewright", "knowledge", "list"], env=environment, cwd=tmp_path).strip()


def test_an_optimisation_without_a_gpu(installed, tmp_path):
    _, environment, root = installed
    task = os.path.join(root, "tasks", "gelu.toml")
    done = subprocess.run(["tilewright", "optimize", task, "--steps", "1", "--seconds", "60", "--no-gpu"], env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    assert done.returncode in (0, 3), done.stdout
