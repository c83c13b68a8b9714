"""C++ is as clang-format writes it: `make check-format` as a test."""
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))


def git(*words):
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("this is no git checkout: " + done.stderr.strip()[:80])
    return done.stdout.splitlines()


def test_every_file_is_formatted():
    program = shutil.which("clang-format")
    if not program:
        pytest.skip("clang-format is not installed")
    files = [f for f in git("ls-files", "*.cpp", "*.h") if (ROOT / f).is_file()]
    assert len(files) > 300
    done = subprocess.run([program, "--dry-run", "--Werror", *files], cwd=ROOT, capture_output=True, text=True)
    wrong = sorted({line.split(":")[0] for line in done.stderr.splitlines() if "[-Wclang-format-violations]" in line})
    assert done.returncode == 0, "run `make format`: " + ", ".join(wrong)
