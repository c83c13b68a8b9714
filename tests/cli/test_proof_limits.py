"""Short texts that ask for proofs without end: check ends by a count of steps, says what was too large, and looks for a counterexample all the same."""
import json
import os
import resource
import subprocess

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")

# Five to twelve seconds of processor time by the count of steps; three times that for a busy machine, whose caches are not ours alone.
MOST_SECONDS = 40

TOP = """import tilewright as tw
from tilewright import f32, i32
N, M = tw.sizes("N M")

"""
KERNEL = """@tw.kernel(target="sm_80", computes="Y[n] = X[n]")
def k(X: tw.Tensor(f32, N), I: tw.Tensor(i32, N, range=(0, N)), Y: tw.Tensor(f32, N)):
    b = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[b : b + 128], fill=0.0)
"""
STORE = "    tw.store(Y[b], x)\n"


def repeated(line, first, end):
    return "".join(line.format(j) for j in range(first, end))


def program(computes, expression, launches=30):
    """One kernel, launched again and again on its own result."""
    text = f'@tw.kernel(target="sm_80", computes="Y[n] = {computes}")\ndef step(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):\n'
    text += f"    b = tw.grid(tw.cdiv(N, 128)) * 128\n    x = tw.load(X[b : b + 128], fill=0.0)\n    tw.store(Y[b], {expression})\n\n"
    text += '@tw.program(computes="Y[n] = X[n]")\ndef steps(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):\n'
    names = ["X"] + [f"T{i}" for i in range(launches - 1)] + ["Y"]
    text += "".join(f"    {name} = tw.buffer(f32, N)\n" for name in names[1:-1])
    return text + "".join(f"    step({a}, {b})\n" for a, b in zip(names, names[1:]))


CASES = {
    "choices on sizes": KERNEL + repeated("    if N % {0} == 0:\n        x = x + {0}.0\n", 2, 18) + STORE,
    "powers of powers": KERNEL + "    a = N\n" + repeated("    a = a * a + {0}\n", 1, 40) + "    x = tw.load(X[a : a + 128], fill=0.0)\n" + STORE,
    "gathers within choices": KERNEL + repeated("    if N % {0} == 0:\n        q{0} = tw.load(I[b : b + 128], fill=0)\n        x = x + tw.load(X[q{0}], fill=0.0)\n", 2, 14) + STORE,
    "places from places": KERNEL + "    e = I[0]\n" + repeated("    if e % {0} == 0:\n        e = I[e]\n", 2, 14) + "    x = x + tw.load(X[e : e + 128], fill=0.0)\n" + STORE,
    "selects of selects": KERNEL + repeated("    x = tw.where(x > {0}.0, x * {0}.0, x + {0}.0)\n", 2, 18) + STORE,
    "smaller ones of smaller ones": KERNEL + "    a = N\n" + repeated("    a = min(a * {0} + 3, M - a)\n", 2, 30) + "    if a > 3:\n        x = x + 1.0\n" + STORE,
    "choices in a loop": KERNEL + "    for t in tw.range(tw.cdiv(N, 64)):\n" + repeated("        if (t + N) % {0} == 0:\n            x = x + tw.load(X[t * {0} : t * {0} + 128], fill=0.0)\n", 2, 12) + STORE,
    "thirty squarings": program("X[n] * X[n]", "x * x"),
    "thirty squarings and sums": program("X[n] * X[n] + X[n]", "x * x + x"),
    "thirty maxima": program("max(X[n] * 2, X[n] + 1)", "tw.maximum(x * 2.0, x + 1.0)"),
}


def checked(folder, text, *words):
    (folder / "kernel.py").write_text(TOP + text)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([PROGRAM, "check", "kernel.py", "--json", "--audit", "0", *words], cwd=folder, capture_output=True, text=True, timeout=600)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("name", CASES)
def test_it_ends_and_nothing_unfinished_is_proved(tmp_path, name):
    done, seconds = checked(tmp_path, CASES[name], "--search", "0.1")
    assert done.returncode in (1, 3), (done.returncode, done.stderr)
    assert seconds < MOST_SECONDS, seconds
    assert len(done.stdout) < 1_000_000
    assert json.loads(done.stdout)["verdict"] in ("violated", "not_proved")


def test_it_says_what_is_too_large_and_what_would_help(tmp_path):
    """A right kernel, so that no counterexample hides the reason."""
    right = "".join(f"    if N % {j} == 0:\n        x = x + {j}.0\n    else:\n        x = x + 1.0\n" for j in range(2, 18))
    undone = "".join(f"    if N % {j} == 0:\n        x = x - {j}.0\n    else:\n        x = x - 1.0\n" for j in range(2, 18))
    done, _ = checked(tmp_path, KERNEL + right + undone + STORE, "--search", "0.1")
    last = json.loads(done.stdout)["kernels"][-1]
    assert last["verdict"] != "proved"
    reasons = [o["reason"] for o in last["assertions"] if o["kind"] == "too large"]
    assert any("too large" in r and "what would help" in r for r in reasons), last["assertions"]


def test_the_count_of_steps_is_the_same_again(tmp_path):
    first, second = (json.loads(checked(tmp_path, CASES["selects of selects"], "--search", "0")[0].stdout)["kernels"][-1]["assertions"] for _ in range(2))
    assert [(o["kind"], o["status"], o["place"]) for o in first] == [(o["kind"], o["status"], o["place"]) for o in second]
