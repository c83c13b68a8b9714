"""The package as Python's tools see it: stubs for every name of the language, kernel files that import, pyright where it is there."""
import glob
import importlib.util
import os
import re
import shutil
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))
FILES = sorted(glob.glob(os.path.join(ROOT, "kernels", "*.py")) + glob.glob(os.path.join(ROOT, "examples", "*.py")))


def test_the_stubs_are_not_stale():
    subprocess.run([sys.executable, os.path.join(ROOT, "scripts", "make_stubs.py"), "--check"], check=True)


def test_every_name_of_the_language_has_a_stub():
    with open(os.path.join(ROOT, "src", "lower", "names.cpp"), encoding="utf-8") as f:
        text = f.read()
    block = re.search(r"kBuiltins\[\] = \{(.*?)\};", text, re.S).group(1)
    names = re.findall(r'"(\w+)"', re.sub(r"//.*", "", block))
    with open(os.path.join(ROOT, "python", "tilewright", "__init__.pyi"), encoding="utf-8") as f:
        stubs = f.read()
    missing = [n for n in names if not re.search(rf"^(def|class) {n}\b", stubs, re.M)]
    assert not missing, f"names.cpp has {missing}: add them to python/tilewright/_names.py and run scripts/make_stubs.py"


@pytest.mark.parametrize("file", FILES, ids=os.path.basename)
def test_a_kernel_file_imports_in_plain_python(file):
    spec = importlib.util.spec_from_file_location("kernel_file_" + os.path.basename(file)[:-3], file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def test_pyright_finds_no_error():
    path = os.path.dirname(sys.executable) + os.pathsep + os.environ.get("PATH", "")
    pyright = shutil.which("basedpyright", path=path) or shutil.which("pyright", path=path)
    if not pyright:
        pytest.skip("pyright is not installed (scripts/setup.sh)")
    done = subprocess.run([pyright], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    assert done.returncode == 0, done.stdout
