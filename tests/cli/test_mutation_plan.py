"""The targets of bench/mutation_plan.txt are kernels that there are."""
import os
import pathlib
import subprocess

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")

LINES = [line.split("  #")[0].split() for line in (SOURCE / "bench" / "mutation_plan.txt").read_text().splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_a_target_is_a_kernel_with_mutants(line):
    file, options = line[0], dict(word.split("=", 1) for word in line[1:])
    words = [file + ("@" + options["set"] if "set" in options else "")] + (["--kernel", options["kernel"]] if "kernel" in options else [])
    done = subprocess.run([PROGRAM, "mutate", *words, "--list", "--limit", "1"], capture_output=True, text=True, timeout=300, cwd=SOURCE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip(), "no mutants"
