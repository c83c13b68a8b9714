"""`tilewright check` as a user meets it: verdicts, exit status, JSON."""
import json
import os
import pathlib
import subprocess

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
BUGS = SOURCE / "tests" / "verify" / "bugs"
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")

# True, and outside of what the provers know: sin of a sum is not expanded.
TRUE_BUT_NOT_PROVED = '''import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[i] = sin(X[i] + X[i])", threads=128)
def double_angle(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 128
    x = tw.load(X[i : i + 128], fill=0.0)
    tw.store(Y[i : i + 128], 2.0 * tw.sin(x) * tw.cos(x))
'''


def check(*words):
    return subprocess.run([PROGRAM, "check", *map(str, words)], capture_output=True, text=True, timeout=300)


def test_proved_is_status_0_and_says_what_the_proof_used():
    done = check(SOURCE / "kernels" / "vector_add.py", "-v")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "vector_add: proved" in done.stdout
    assert "output value" in done.stdout and "used:" in done.stdout


def test_wrong_is_status_1_with_place_instance_and_hint():
    file = BUGS / "missing_sync_between_write_and_read.py"
    done = check(file)
    assert done.returncode == 1
    assert f"{file}:16:" in done.stdout and "violated[TW2001]" in done.stdout
    for part in ("instance:", "confirmed on the emulator", "hint:", "it collides with"):
        assert part in done.stdout


def test_not_proved_is_status_3_and_says_what_was_tried(tmp_path):
    file = tmp_path / "double_angle.py"
    file.write_text(TRUE_BUT_NOT_PROVED)
    done = check(file, "--search", "0.5")
    assert done.returncode == 3, done.stdout
    assert "not_proved" in done.stdout and "expected" in done.stdout


def test_what_is_proved_also_runs():
    file = SOURCE / "kernels" / "vector_add.py"
    done = check(file)
    assert done.returncode == 0 and "; audited: " in done.stdout and " runs in " in done.stdout
    (kernel,) = json.loads(check(file, "--json", "--audit", "0.2").stdout)["kernels"]
    assert kernel["verdict"] == "proved"
    assert kernel["audit"]["runs"] > 0 and kernel["audit"]["seconds"] < 1 and "failing_run" not in kernel["audit"]


def test_a_program_of_a_wrong_kernel_is_no_mistake_of_a_proof(tmp_path):
    file = tmp_path / "twice.py"
    file.write_text('''import tilewright as tw
from tilewright import f32

N = tw.sizes("N")


@tw.kernel(target="sm_80", computes="Y[n] = X[n] * 2")
def double(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    i = tw.grid(tw.cdiv(N, 128)) * 129
    tw.store(Y[i], tw.load(X[i : i + 128], fill=0.0) * 2.0)


@tw.program(computes="Y[n] = X[n] * 4")
def quadruple(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N)):
    T = tw.buffer(f32, N)
    double(X, T)
    double(T, Y)
''')
    done = check(file, "--audit", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "double is not proved" in done.stdout and "refutes the proof" not in done.stdout


def test_the_audit_can_be_switched_off():
    file = SOURCE / "kernels" / "vector_add.py"
    assert "audit" not in check(file, "--audit", "0").stdout
    (kernel,) = json.loads(check(file, "--json", "--audit", "0").stdout)["kernels"]
    assert "audit" not in kernel
    assert check(file, "--audit", "-1").returncode == 2


def test_one_run_of_the_audit():
    done = check(SOURCE / "kernels" / "vector_add.py", "--audit-run", "3", "--seed", "5")
    assert done.returncode == 0 and "audited: 1 run in " in done.stdout


def test_a_grid_smaller_than_its_cluster_is_not_proved(tmp_path):
    file = tmp_path / "row_sum.py"
    file.write_text((BUGS / "correct_row_over_a_cluster_control.py").read_text().replace("tw.grid(4, M)", "tw.grid(2, M)"))
    done = check(file, "--search", "0.5")
    assert done.returncode in (1, 3)
    assert "whole" in done.stdout and "cluster" in done.stdout


def test_json_has_the_documented_keys():
    done = check(BUGS / "swapped_operands.py", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == report["exit_code"] == 1
    assert report["schema"] == "tilewright check 3" and list(report)[:2] == ["schema", "verdict"] and report["file"].endswith("swapped_operands.py")
    (kernel,) = report["kernels"]
    assert kernel["verdict"] == "violated"
    assert {"kernel", "line", "verdict", "milliseconds", "instances", "used", "assertions", "counterexample"} <= kernel.keys()
    for assertion in kernel["assertions"]:
        assert {"kind", "code", "text", "place", "status", "prover", "milliseconds", "used"} <= assertion.keys()
        assert assertion["status"] in ("proved", "violated", "not_proved", "vacuous")
        if assertion["status"] != "proved":
            assert assertion["reason"]
    assert [a["status"] for a in kernel["assertions"]].count("violated") == 1
    example = kernel["counterexample"]
    assert {"kind", "code", "message", "place", "statement", "sizes", "schedule", "seed", "block", "thread", "element", "hint", "confirmed",
            "trials", "expected_tag", "actual_tag", "expected_value", "actual_value", "differences", "trace"} <= example.keys()
    assert example["confirmed"] is True and example["code"] == "TW1001"
    assert example["differences"][0] == {"kind": "missing", "text": "sum(k in 0:8, A[0, k] * B[1, k])"}
    for step in example["trace"]:
        assert {"place", "action", "detail", "who", "role", "thread", "block", "iteration", "statement"} <= step.keys()


def test_json_has_the_picture_and_the_missing_order():
    (kernel,) = json.loads(check(BUGS / "swizzle_ignored_by_a_recast_view.py", "--json").stdout)["kernels"]
    picture = kernel["counterexample"]["picture"]
    assert {"title", "rows", "columns", "cells", "wrong", "legend", "clipped"} == picture.keys()
    assert len(picture["cells"]) == len(picture["wrong"]) == len(picture["rows"])
    assert any(any(row) for row in picture["wrong"])
    (kernel,) = json.loads(check(BUGS / "byte_count_too_large.py", "--json").stdout)["kernels"]
    assert kernel["counterexample"]["missing"] == "all arrivals of this phase came, but 8192 of the announced bytes never land"
    assert kernel["counterexample"]["trace"][0]["role"] == "consumer"


def test_json_of_a_proof_has_no_counterexample():
    report = json.loads(check(SOURCE / "kernels" / "softmax.py", "--json").stdout)
    assert report["exit_code"] == 0
    assert [k["verdict"] for k in report["kernels"]] == ["proved", "proved"]
    assert all("counterexample" not in k for k in report["kernels"])


def test_the_same_seed_finds_the_same_counterexample():
    runs = [json.loads(check(BUGS / "wrong_fill_for_max.py", "--json", "--seed", "7").stdout)["kernels"][0]["counterexample"] for _ in range(2)]
    assert runs[0] == runs[1]


def test_a_constant_is_set():
    done = check(SOURCE / "kernels" / "vector_add.py", "--set", "BLOCK=256")
    assert done.returncode == 0


@pytest.mark.parametrize("words", [
    ["no-such-file.py"],
    [SOURCE / "kernels" / "vector_add.py", "--set", "BLOCK"],
    [SOURCE / "kernels" / "vector_add.py", "--set", "BLOCK=abc"],
    [SOURCE / "kernels" / "vector_add.py", "--set", "=3"],
    [SOURCE / "kernels" / "vector_add.py", "--set", "NOSUCH=3"],
    [SOURCE / "kernels" / "vector_add.py", "--kernel", "nosuch"],
    [SOURCE / "kernels" / "vector_add.py", "--no-such-option"],
    [],
])
def test_bad_input_is_status_2_and_explained(words):
    done = check(*words)
    assert done.returncode == 2
    assert done.stderr.strip()


def test_a_kernel_that_does_not_compile_is_status_1(tmp_path):
    file = tmp_path / "broken.py"
    file.write_text(TRUE_BUT_NOT_PROVED.replace("tw.cos(x)", "tw.cos(y)"))
    done = check(file)
    assert done.returncode == 1
    assert "broken.py:11" in done.stderr
