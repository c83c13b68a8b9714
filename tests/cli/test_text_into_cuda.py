"""Nothing that a kernel file says in words becomes CUDA: the attempts that once did, through the program."""
import json
import os
import subprocess

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")

HEAD = 'import tilewright as tw\nfrom tilewright import f32\nN = tw.sizes("N")\n\n'
BODY = "    i = tw.grid(tw.cdiv(N, 128)) * 128\n"
STORE = "tw.store(Y[i], tw.load(X[i : i + 128], fill=0.0) * 2.0)\n"


def kernel(name="dbl", assume="", doc="", target="sm_80", wrap="", decorator=""):
    text = HEAD + f'@tw.kernel(target="{target}", computes="Y[n] = X[n] * 2"{decorator})\n'
    text += f"def {name}(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):\n" + doc + (f"    tw.assume({assume})\n" if assume else "") + BODY
    return text + (wrap + "        " if wrap else "    ") + STORE


def tilewright(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=300)


def emitted(tmp_path, text, file="k.py"):
    (tmp_path / file).write_text(text)
    done = tilewright("emit", tmp_path / file)
    assert done.returncode == 0, done.stderr
    return done.stdout


def code(text):
    """Without comments and blank lines: no emitted line has // in a string."""
    return [line for line in (line.split("//")[0].rstrip() for line in text.splitlines()) if line]


def test_a_role_is_called_by_a_name(tmp_path):
    role = '    with tw.warpgroups(0, name="all\\n    for (int j = threadIdx.x; j < N; j += 128) Y[j] = 42.0f;\\n    return;  //"):\n'
    (tmp_path / "k.py").write_text(kernel(target="sm_90a", wrap=role, decorator=", threads=128"))
    for command in ("check", "emit", "ir"):
        done = tilewright(command, tmp_path / "k.py")
        assert done.returncode in (1, 2) and "is not a name" in done.stderr + done.stdout, done.stderr
        assert "42.0f;\n" not in done.stdout


@pytest.mark.parametrize("line", ["#define stored 21.0f; Y[0] = 42.0f; float stored", '#include "/etc/hostname"', "# words \\", "# ??/"])
def test_comments_in_an_assumption_stay_in_the_kernel_file(tmp_path, line):
    plain = emitted(tmp_path, kernel(assume="N <= 2000000 and N // 1 >= 0"))
    attempt = emitted(tmp_path, kernel(assume=f"N <= 2000000 and N\n{line}\n        // 1 >= 0"))
    assert code(attempt) == code(plain)
    assert all(line.startswith(("#include \"tw_", "#pragma unroll")) for line in attempt.splitlines() if line.startswith("#"))


def test_an_assumption_over_several_lines_compiles(tmp_path):
    text = kernel(assume="N <= 2000000 and\n              N >= 1")
    assert "// assumes ((N <= 2000000) and (1 <= N))" in emitted(tmp_path, text).splitlines()
    report = tilewright("emit", tmp_path / "k.py", "--to", "report")
    assert report.returncode in (0, 2), report.stderr   # 2: no NVRTC here
    assert tilewright("check", tmp_path / "k.py").returncode == 0


def test_a_docstring_that_ends_in_a_backslash_eats_no_line(tmp_path):
    plain = emitted(tmp_path, kernel(doc='    "plain"\n'))
    assert code(emitted(tmp_path, kernel(doc='    "words \\\\"\n'))) == code(plain)


def test_a_file_of_any_name_is_a_comment(tmp_path):
    plain = emitted(tmp_path, kernel())
    assert code(emitted(tmp_path, kernel(), file="a\n#define int float\nb\\.py")) == code(plain)


@pytest.mark.parametrize("name", ["double", "int", "main", "threadIdx", "trunc"])
def test_kernels_may_be_called_what_they_like(tmp_path, name):
    text = emitted(tmp_path, kernel(name=name))
    assert f" {name}_kernel(" in text
    plan = json.loads(tilewright("emit", tmp_path / "k.py", "--to", "plan").stdout)["kernels"][0]
    assert plan["name"] == name and plan["entry"] == f"{name}_kernel"
    report = tilewright("emit", tmp_path / "k.py", "--to", "report")
    assert report.returncode in (0, 2), report.stderr
