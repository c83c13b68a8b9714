"""Hostile input to every command that takes a file: a diagnostic with its place, a documented exit status, no crash, no hang, no flood of memory."""
import os
import pathlib
import re
import resource
import subprocess

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
SANITIZED = "build-sanitize" in (PROGRAM or "")  # address space is reserved by the terabyte there
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")

KERNEL = '''import tilewright as tw
from tilewright import f32
N = tw.sizes("N")

@tw.kernel(target="%(target)s", computes="%(computes)s")
def k(A: tw.Tensor(f32, %(dim)s), C: tw.Tensor(f32, N), BLOCK: tw.const(128, 256) = 256):
    i = tw.grid(%(grid)s) * BLOCK
%(body)s
'''
COPY = "    tw.store(C[i : i + BLOCK], tw.load(A[i : i + BLOCK], fill=0.0))\n"


def kernel(body="", computes="C[n] = A[n]", target="sm_80", dim="N", grid="tw.cdiv(N, BLOCK)", copy=COPY):
    return KERNEL % {"target": target, "computes": computes, "dim": dim, "grid": grid, "body": body + copy}


def run(*words, seconds=240):  # a hang, not a slow machine
    limit = None if SANITIZED else lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, timeout=seconds, preexec_fn=limit, cwd=SOURCE, env={**os.environ, "TILEWRIGHT_HIDE": "driver"})


# Texts that must be refused at a line, whoever reads them.
REFUSED = {
    "nul": kernel().replace("i + BLOCK", "i + \0BLOCK").encode(),
    "not_utf8": kernel().encode().replace(b"BLOCK],", b"BL\xff\xfe\xe9],"),
    "surrogate": b'x = "\xed\xa0\x80"\n',
    "unterminated": b'x = """abc',
    "parentheses": kernel("    x = " + "(" * 100000 + "1" + ")" * 100000 + "\n"),
    "signs": kernel("    x = " + "-" * 100000 + "1\n"),
    "sum": kernel("    x = " + "i+" * 100000 + "1\n"),
    "and": kernel("    x = " + "i and " * 100000 + "1\n"),
    "or": kernel("    x = " + "i or " * 100000 + "1\n"),
    "comparisons": kernel("    x = " + "i < " * 100000 + "1\n"),
    "powers": kernel("    x = " + "i**" * 100000 + "1\n"),
    "subscripts": kernel("    x = A" + "[0]" * 100000 + "\n"),
    "conditionals": kernel("    x = " + "1 if i else " * 50000 + "1\n"),
    "elif": kernel("    if i:\n        x = 1\n" + "    elif i:\n        x = 1\n" * 20000),
    "blocks": kernel("".join(" " * (4 + i) + "if i:\n" for i in range(1000)) + " " * 1004 + "x = 1\n"),
    "lambdas": "x = " + "lambda: " * 50000 + "1\n",
    "computes_parentheses": kernel(computes="C[n] = " + "(" * 100000 + "A[n]" + ")" * 100000),
    "computes_sum": kernel(computes="C[n] = A[n]" + " + A[n]" * 50000),
    "computes_and": kernel(computes="C[n] = where(" + "n > 0 and " * 20000 + "n > 1, A[n], 0.0)"),
    "computes_index": kernel(computes="C[n] = A[" + "n + " * 20000 + "n]"),
    "computes_let_of_itself": kernel(computes="let a = a + 1; C[n] = A[a]"),
    "computes_doubling": kernel(computes="let a0[n] = A[n]; " + "; ".join(f"let a{i}[n] = a{i - 1}[n] + a{i - 1}[n]" for i in range(1, 61)) + "; C[n] = a60[n]"),
    "computes_tower": kernel(computes="let a0[n] = A[n]; " + "; ".join(f"let a{i}[n] = a{i - 1}[n]" for i in range(1, 2000)) + "; C[n] = a1999[n]"),
    "computes_integer": kernel(computes="C[n] = A[n] + " + "9" * 5000),
    "integer": kernel("    x = " + "9" * 10000 + "\n"),
    "hexadecimal": kernel("    x = 0x" + "f" * 5000 + "\n"),
    "float": kernel("    x = 1e99999\n"),
    "power": kernel("    x = 2 ** 9223372036854775807\n"),
    "shift": kernel("    x = 1 << 9223372036854775807\n"),
    "division": kernel("    x = 1 // 0\n"),
    "tile": kernel("    x = tw.zeros(f32, (1 << 20, 1 << 20))\n"),
    "negative_tile": kernel("    x = tw.zeros(f32, (-4,))\n"),
    "empty_tile": kernel("    x = tw.zeros(f32, (0,))\n"),
    "shared": kernel("    s = tw.shared(f32, (1 << 20, 1 << 20))\n"),
    "barriers": kernel("    b = tw.mbarrier(9223372036854775807)\n", target="sm_90a"),
    "stages": kernel("    r = tw.pipeline(9223372036854775807)\n", target="sm_90a"),
    "unroll": kernel("    for j in tw.unroll(1000):\n        for l in tw.unroll(1000):\n            x = tw.zeros(f32, (256,))\n"),
    "dimension": kernel(dim="9223372036854775807"),
    "rank": kernel(dim=", ".join(["N"] * 1000)),
    "recursion": kernel("    x = f(i)\n").replace("\n@tw.kernel", "\n@tw.inline\ndef f(x):\n    return f(x)\n\n@tw.kernel"),
    "doubling": kernel("    x = g39(i)\n").replace("\n@tw.kernel", "\n@tw.inline\ndef g0(x):\n    return x + 1\n" + "".join(f"@tw.inline\ndef g{i}(x):\n    return g{i - 1}(g{i - 1}(x))\n" for i in range(1, 40)) + "\n@tw.kernel"),
}


def written(tmp_path, text):
    file = tmp_path / "hostile.py"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


@pytest.mark.parametrize("name", REFUSED)
def test_hostile_text_gets_a_diagnostic_with_its_place(tmp_path, name):
    file = written(tmp_path, REFUSED[name])
    done = run("check", file)
    said = done.stderr.decode("utf-8", "replace") + done.stdout.decode("utf-8", "replace")
    assert done.returncode == 1, (done.returncode, said[:500])
    assert re.search(r"hostile\.py:\d+:\d+: error\[TW\d{4}\]", said), said[:500]
    assert len(said) < 20000


@pytest.mark.parametrize("words", [("run", "--set", "N=4"), ("ir",), ("emit",), ("mutate",)], ids=lambda w: w[0])
def test_the_other_commands_say_the_same(tmp_path, words):
    for name in ("nul", "and", "elif", "tile", "computes_sum"):
        done = run(words[0], written(tmp_path, REFUSED[name]), *words[1:])
        assert done.returncode in (1, 2), (name, done.returncode)
        assert b"error[TW" in done.stderr + done.stdout, (name, done.stderr[:300])


@pytest.mark.parametrize("command", ["check", "run", "ir", "emit", "mutate"])
def test_ten_megabytes_are_refused_at_once(tmp_path, command):
    for content in (b"\0" * 10_000_000, b"x = 1\n" * 1_700_000, os.urandom(10_000_000)):
        done = run(command, written(tmp_path, content), seconds=120)
        assert done.returncode == 2 and b"TW0002" in done.stderr + done.stdout


def test_a_list_as_long_as_a_file_is_no_tower(tmp_path):
    # An integer may have 10,000 parts (TW0311): this one has nearly as many.
    file = written(tmp_path, kernel("    x = tw.min(" + ", ".join(f"i + {n}" for n in range(2400)) + ")\n    if x > 0:\n        y = 1\n"))
    assert run("ir", file).returncode == 0


@pytest.mark.parametrize("settings, status, said", [
    ("N=99999999999999", 2, b"the limit is"),
    ("N=9223372036854775807", 2, b""),
    ("N=9223372036854775808", 2, b"N"),
    ("N=-5", 2, b""),
    ("N=0", 0, b"right"),
    ("N=4,NOPE=3", 2, b"NOPE"),
    ("N=", 2, b"N"),
    ("N", 2, b"N"),
    ("=", 2, b""),
    ("N=1e9", 2, b""),
])
def test_absurd_sizes(settings, status, said):
    done = run("run", "kernels/vector_add.py", "--set", settings)
    assert done.returncode == status, (done.stderr, done.stdout)
    assert said in done.stderr + done.stdout


def test_a_grid_beyond_the_hardware_is_refused(tmp_path):
    done = run("run", written(tmp_path, kernel(grid="9223372036854775807")), "--set", "N=4")
    assert done.returncode == 2 and b"blocks along axis 0" in done.stderr, done.stderr


@pytest.mark.parametrize("body", ["    for j in tw.range(9223372036854775807):\n        x = j\n",
                                  "    x = tw.zeros(f32, (256,))\n    for j in tw.range(1000000000):\n        x = x + 1.0\n"], ids=["empty", "full"])
def test_a_loop_without_end_is_given_up(tmp_path, body):
    done = run("run", written(tmp_path, kernel(body)), "--set", "N=4", "--timeout", "2")
    assert done.returncode in (0, 3), (done.returncode, done.stderr)
    if done.returncode == 3:
        assert b"gave up" in done.stderr and b"--timeout" in done.stderr


@pytest.mark.parametrize("expression", ["(", "(" * 100000, "9" * 1000, "(4,8):(1", "(1000000,1000000):(1,1)", "(9223372036854775807,9223372036854775807):(1,1)", "(0,0):(0,0)", "(-1):(1)", "\x01",
                                        "4:" + "1" * 400, "complement((4,4):(1,4), 9223372036854775807)", "Sw<99,99,99>", "((" * 200 + "4" + "))" * 200 + ":1"])
def test_layout_expressions(expression):
    done = run("layout", expression, seconds=120)
    assert done.returncode in (0, 1, 2), (done.returncode, done.stderr[:300])
    assert len(done.stdout) < 3_000_000


@pytest.mark.parametrize("text", [b"", b"\0" * 100, b"\xff\xfe", b"a = " + b"[" * 100000, b"name = 1\n", b'[task]\nname = "' + b"x" * 100000 + b'"\n', b"x = " + b"9" * 100000 + b"\n"], ids=range(7))
def test_task_files(tmp_path, text):
    task = tmp_path / "task.toml"
    task.write_bytes(text)
    done = run("optimize", task)
    assert done.returncode == 2, (done.returncode, done.stderr[:300])
    assert done.stderr
