"""Every ```console block of the documentation, executed: a `$ ` line is a command (`> ` lines continue it), what follows is its output.

Commands run in a folder that sees kernels/, with `tilewright` in the PATH. A line `...` stands for any lines. Times and the
counts of assertions and instances are masked: they change with the machine and with the verifier; so is the thread number.
"""
import os
import re
import subprocess

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = ["README.md", "docs/tutorial.md", "docs/verifier.md", "docs/trusted-base.md"]
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")


def blocks():
    for page in PAGES:
        with open(os.path.join(ROOT, page)) as f:
            text = f.read()
        for match in re.finditer(r"^```console\n(.*?)^```$", text, re.S | re.M):
            yield pytest.param(match.group(1), id=f"{page}:{text[:match.start()].count(chr(10)) + 1}")


def commands(block):
    steps = []
    for line in block.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], []))
        elif (line.startswith("> ") or line == ">") and steps and not steps[-1][1]:
            steps[-1] = (steps[-1][0] + "\n" + line[2:], [])
        else:
            steps[-1][1].append(line)
    return steps


def masked(line):
    line = re.sub(r"\d+(\.\d+)? (ms|s)\b", "TIME", line)
    line = re.sub(r"\d+ of \d+ assertions", "N assertions", line)
    line = re.sub(r"\d+ instances", "N instances", line)
    line = re.sub(r"audited: \d+ runs?", "audited: N runs", line)
    line = re.sub(r"thread \d+", "thread N", line)
    return line.rstrip()


def matches(expected, actual):
    """`expected` against `actual`, where a line `...` stands for any number of lines."""
    if not expected:
        return not actual
    if expected[0] == "...":
        return any(matches(expected[1:], actual[i:]) for i in range(len(actual) + 1))
    return bool(actual) and expected[0] == actual[0] and matches(expected[1:], actual[1:])


@pytest.mark.parametrize("block", blocks())
def test_the_block_prints_what_it_says(block, tmp_path):
    os.symlink(os.path.join(ROOT, "kernels"), tmp_path / "kernels")
    (tmp_path / "bin").mkdir()
    os.symlink(os.path.abspath(PROGRAM), tmp_path / "bin" / "tilewright")
    environment = dict(os.environ, PATH=f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    for command, expected in commands(block):
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
        # On a slow machine a run says how far it is.
        actual = [masked(line) for line in done.stdout.splitlines() if not line.startswith("emulating, ")]
        assert matches([masked(line) for line in expected], actual), f"$ {command}\n{done.stdout}"
        assert done.returncode in (0, 1, 3), f"$ {command}: exit status {done.returncode}\n{done.stdout}"
