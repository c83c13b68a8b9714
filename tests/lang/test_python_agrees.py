"""Every accepted file is Python, and the dumps that accept_test.cpp compares with are what Python's `ast` says.

`python3 test_python_agrees.py --update` writes the dumps.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import python_ast_dump

FOLDER = pathlib.Path(__file__).parent / "accept"
ROOT = pathlib.Path(__file__).resolve().parents[2]


def accepted_files():
    return sorted(FOLDER.glob("*.py"))


def test_dumps_are_pythons():
    assert accepted_files()
    for path in accepted_files():
        assert path.with_suffix(".dump").read_bytes().decode() == python_ast_dump.dump(path.read_bytes()), path.name


def test_kernels_compile_as_python():
    for path in sorted(ROOT.glob("kernels/**/*.py")):
        compile(path.read_bytes(), str(path), "exec")


if __name__ == "__main__" and "--update" in sys.argv:
    for accepted in accepted_files():
        accepted.with_suffix(".dump").write_bytes(python_ast_dump.dump(accepted.read_bytes()).encode())
