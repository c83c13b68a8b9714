"""check, ir, emit and compile end: small texts that stand for a lot of work are refused or given up."""
import json
import os
import pathlib
import subprocess
import time

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")

HEAD = '''import tilewright as tw
from tilewright import f32
N = tw.sizes("N")

@tw.kernel(target="sm_80", computes="Y[n] = X[n]")
def k(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
'''
END = "    tw.store(Y[i], x)\n"
IFS = HEAD + "".join(f"    if N % {k} == 0:\n        x = x + {k}.0\n" for k in range(2, 18)) + END


def run(folder, text, *words, command="check", name="kernel.py"):
    (folder / name).write_text(text)
    begin = time.monotonic()
    done = subprocess.run([PROGRAM, command, name, *map(str, words)], cwd=folder, capture_output=True, text=True, timeout=600)
    return done, time.monotonic() - begin


@pytest.mark.parametrize("name,body", [("tuples", "    t = (i, i)\n" + "    t = (t, t)\n" * 30), ("products", "    a = N + i\n    b = " + " * ".join(["(a + i + N)"] * 40) + "\n")])
@pytest.mark.parametrize("command", ["check", "ir", "emit"])
def test_texts_that_double_are_refused_with_a_place(tmp_path, name, body, command):
    done, seconds = run(tmp_path, HEAD + body + END, command=command)
    assert done.returncode == 1 and "TW0311" in done.stderr and "kernel.py:" in done.stderr, done.stdout + done.stderr
    assert seconds < 60


def test_a_variable_that_is_squared_again_and_again(tmp_path):
    """Each assignment is a statement, so the text is small; what it stands for is not, and the prover is stopped."""
    done, _ = run(tmp_path, HEAD + "    a = N\n" + "    a = a * a + 1\n" * 40 + END, "--limit-seconds", 3, "--search", 0, "--audit", 0)
    assert done.returncode in (0, 1, 3) and (done.returncode != 3 or "gave up" in done.stderr), (done.returncode, done.stdout, done.stderr)


def chain(step):
    return HEAD + "    a = N\n" + "".join("    " + step.format(1000 - 7 * i, 3 + i, 5 + i) + "\n" for i in range(40))


@pytest.mark.parametrize("step", ["a = a // {0} * {1} + a % {1}", "a = a % {0} + a // {1}", "a = a + 1 if a % {0} == 0 else a - 1"])
@pytest.mark.parametrize("use", ["if a == 3:\n        x = x + 0.0\n", "x = x + tw.load(X[a : a + 128], fill=0.0)\n"], ids=["branch", "view"])
def test_integers_that_stand_for_ever_more_are_lowered(tmp_path, step, use):
    """Each line names the one before several times: written out, the last has 3^40 parts."""
    done, _ = run(tmp_path, chain(step) + "    " + use + END, "--limit-seconds", 20, "--limit-megabytes", 2000, command="emit")
    assert done.returncode == 0, done.stderr


def test_quotients_of_quotients_are_bounded_once_each(tmp_path):
    done, _ = run(tmp_path, chain("a = a // {1} * {2}") + "    if a == 3:\n        x = x + 0.0\n" + END, "--limit-seconds", 20, "--search", 0, "--audit", 0)
    assert done.returncode == 0 and "proved" in done.stdout, (done.returncode, done.stdout[-500:], done.stderr)


def test_a_kernel_is_given_up_at_its_limit_of_time(tmp_path):
    done, _ = run(tmp_path, IFS, "--limit-seconds", 0.5, "--search", 0, "--audit", 0)
    assert done.returncode == 3 and "gave up: more than 0.5 s of processor time" in done.stderr, (done.returncode, done.stdout[-500:], done.stderr)


def test_the_verdicts_before_it_are_kept(tmp_path):
    first = HEAD.replace("def k(", "def first(") + END
    done, _ = run(tmp_path, first + IFS[IFS.index("@tw.kernel"):], "--limit-seconds", 1.5, "--search", 0, "--audit", 0, "--json")
    said = json.loads(done.stdout)
    assert done.returncode == 3 and said["exit_code"] == 3 and "gave up" in said["gave_up"], done.stderr
    assert [k["kernel"] for k in said["kernels"]] == ["first"] and said["kernels"][0]["verdict"] == "proved"


def test_a_kernel_is_given_up_at_its_limit_of_memory(tmp_path):
    done, _ = run(tmp_path, IFS, "--limit-megabytes", 1, "--search", 0)
    assert done.returncode == 3 and "gave up: more than 1 MB of memory" in done.stderr, done.stderr


def test_hints_for_thousands_of_statements_take_bounded_memory(tmp_path):
    """Each of 2000 statements could be changed in thousands of ways; the list of all of them took 3 GB."""
    done, _ = run(tmp_path, HEAD + "    for j in tw.unroll(2000):\n        x = x + 1.0\n" + END, "--audit", 0, "--limit-megabytes", 500)
    assert done.returncode == 1 and "violated" in done.stdout, (done.returncode, done.stdout[-500:], done.stderr)


@pytest.mark.parametrize("words", [["--limit-seconds", "nan"], ["--limit-seconds", "0"], ["--limit-megabytes", "-1"]])
def test_senseless_limits_are_refused(tmp_path, words):
    assert run(tmp_path, HEAD + END, *words)[0].returncode == 2


def test_absurd_constants_are_no_bug_of_ours(tmp_path):
    text = '''import tilewright as tw
from tilewright import f32, i32
P, E, N = tw.sizes("P E N")


@tw.kernel(target="sm_80", computes="Y[p, n] = X[p, n] * W[expert[p], n]", threads=128)
def scaled_groups(X: tw.Tensor(f32, P, N), W: tw.Tensor(f32, E, N), expert: tw.Tensor(i32, P), starts: tw.Tensor(i32, E + 1, offsets_of="expert"), Y: tw.Tensor(f32, P, N)):
    bn, part, e = tw.grid(tw.cdiv(N, 32), 2, E)
    first = starts[e]
    end = starts[e + 1]
    w = tw.load(W[e, bn * 32 : bn * 32 + 32], fill=0.0)
    for m in tw.range(part, tw.cdiv(end - first, 2147483648), 2):
        row = first + m * 16
        x = tw.load(X[row : row + 16, bn * 32 : bn * 32 + 32], fill=0.0)
        tw.store(Y[row, bn * 32], x * w[None, :])
'''
    done, _ = run(tmp_path, text)
    assert done.returncode in (1, 3), (done.returncode, done.stderr)


def test_a_large_modulus_in_an_assumption(tmp_path):
    text = HEAD.replace("    i = tw.grid", "    tw.assume(N % 1000000 == 0)\n    i = tw.grid") + END
    done, _ = run(tmp_path, text)
    assert done.returncode == 0, done.stdout + done.stderr


def test_files_without_a_kernel(tmp_path):
    for text in ("", "\n\n# nothing\n", "import tilewright as tw\n"):
        done, _ = run(tmp_path, text)
        assert done.returncode == 2 and "no kernel" in done.stderr, (text, done.returncode, done.stderr)
    done, _ = run(tmp_path, 'name = "x"\n', name="task.toml")
    assert done.returncode == 2 and "tilewright optimize task.toml" in done.stderr


def test_nothing_commands_the_terminal(tmp_path):
    escape = "\x1b]0;owned\x07\x1b[2J"
    (tmp_path / "kernel.py").write_text(HEAD + END)
    odd = tmp_path / f"{escape}.py"
    odd.write_text(HEAD + END)
    for words in (["check", odd], ["check", "kernel.py", "--kernel", escape], ["check", escape], ["ir", "kernel.py", "--after", escape], ["emit", "kernel.py", "--to", escape], ["optimize", escape], ["explain", escape],
                  ["optimize", "--computes", "Y[n] = X[n]", "--set", "N=8", "--no-gpu", "--steps", "1", "--seconds", "5", "--proposer", "command:" + escape], [escape], ["runs", "--journal", escape], ["show", escape], ["layout", escape], ["knowledge", "show", escape], ["check", "kernel.py", "--" + escape]):
        done = subprocess.run([PROGRAM, *map(str, words)], cwd=tmp_path, capture_output=True, env={**os.environ, "TILEWRIGHT_STATE": str(tmp_path / "state")})
        assert b"\x1b" not in done.stdout + done.stderr, (words, done.stdout, done.stderr)
    comment, _ = run(tmp_path, HEAD + END + "# " + escape + "\n")
    assert comment.returncode == 1 and "control character 0x1b" in comment.stderr and "\x1b" not in comment.stderr


def test_no_run_of_the_audit_makes_data_that_it_could_not_use(tmp_path):
    """A kernel for one size of billions of elements is proved; there is no run of it on the emulator, and no memory taken for one."""
    text = HEAD.replace('N = tw.sizes("N")', "N = 1 << 31").replace("tw.load(X[i : i + 128], fill=0.0)", "tw.load(X[i : i + 128])")
    done, _ = run(tmp_path, text + END.replace("Y[i]", "Y[i : i + 128]"), "--limit-megabytes", 1024)
    assert done.returncode == 0 and "audit: no run" in done.stdout, (done.returncode, done.stdout, done.stderr)
