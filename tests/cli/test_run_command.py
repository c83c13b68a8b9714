"""`tilewright run --target cpu` as a user meets it."""
import json
import os
import pathlib
import subprocess

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
KERNELS = SOURCE / "kernels"
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")


def run(*words):
    return subprocess.run([PROGRAM, "run", *map(str, words)], capture_output=True, text=True, timeout=300)


def test_right_is_status_0_and_says_how_right():
    done = run(KERNELS / "softmax.py", "--set", "M=3,N=300")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("right softmax") and "allowed" in done.stdout


def test_wrong_is_status_1_and_shows_the_place():
    done = run(SOURCE / "tests" / "verify" / "bugs" / "zero_fill_before_exp.py", "--set", "M=3,N=100")
    assert done.returncode == 1
    assert "WRONG" in done.stdout and "Y[" in done.stdout


def test_json_has_its_keys_for_every_schedule():
    done = run(KERNELS / "transpose.py", "--set", "M=33,N=31", "--schedules", "2", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 0
    assert report["kernel"] == "transpose"
    assert len(report["runs"]) == 8  # fair and reversed, each eager and lazy; first and last warp starved; two random
    for one in report["runs"]:
        assert {"schedule", "right", "outputs", "faults", "blocks", "statements", "seconds"} <= one.keys()
        assert one["right"] and one["faults"] == [] and one["blocks"] == 2
        assert {"output", "relative_error", "worst", "tolerance", "wrong"} <= one["outputs"][0].keys()


def test_json_of_a_fault():
    file = SOURCE / "tests" / "verify" / "bugs" / "missing_sync_between_write_and_read.py"
    places = [n for n, line in enumerate(file.read_text().splitlines(), 1) if line.endswith("# here")]
    report = json.loads(run(file, "--set", "M=40,N=40", "--json").stdout)
    fault = report["runs"][0]["faults"][0]
    assert fault["kind"] == "race" and fault["line"] in places


def test_sizes_and_constants_share_one_option():
    done = run(KERNELS / "vector_add.py", "--set", "N=1000", "--set", "BLOCK=256")
    assert done.returncode == 0
    assert "4 blocks" in done.stdout


def test_the_variant_is_chosen_by_its_assumptions():
    report = json.loads(run(KERNELS / "bias_gelu.py", "--set", "M=8,N=256", "--json").stdout)
    other = json.loads(run(KERNELS / "bias_gelu.py", "--set", "M=8,N=255", "--json").stdout)
    # Four rows a block where rows are aligned; elsewhere a block for each of the 64 ways in which rows may lie.
    assert report["runs"][0]["blocks"] == 2
    assert other["runs"][0]["blocks"] == 64


@pytest.mark.parametrize("words, named", [
    (["no-such-file.py", "--set", "N=1"], "no-such-file.py"),
    ([KERNELS / "vector_add.py"], "N"),
    ([KERNELS / "vector_add.py", "--set", "N"], "'N'"),
    ([KERNELS / "vector_add.py", "--set", "N=1x"], "'N=1x'"),
    ([KERNELS / "vector_add.py", "--set", "N=1,FOO=2"], "FOO"),
    ([KERNELS / "vector_add.py", "--set", "N=1", "--target", "abacus"], "abacus"),
    ([KERNELS / "layernorm.py", "--set", "M=1,N=7"], "assume"),
])
def test_bad_input_is_status_2_and_names_what_is_wrong(words, named):
    done = run(*words)
    assert done.returncode == 2
    assert named in done.stderr


def error_of(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return max(one["relative_error"] for one in json.loads(done.stdout)["runs"][0]["outputs"])


def test_given_inputs_and_scalars_are_what_the_kernel_gets(tmp_path):
    zeros = tmp_path / "zeros.json"
    zeros.write_text(json.dumps({"X": [0] * 3 * 256}))
    equal = (KERNELS / "softmax.py", "--set", "M=3,N=256", "--json")
    assert error_of(run(*equal)) > 0
    assert error_of(run(*equal, "--inputs", zeros)) == 0  # 1/256 is exact
    normal = (KERNELS / "layernorm.py", "--set", "M=3,N=256", "--json")
    assert error_of(run(*normal)) > 1e-5
    assert error_of(run(*normal, "--scalar", "eps=1e30")) < 1e-9  # beta alone is left


def test_a_tolerance_is_a_number_above_0():
    for text in ("inf", "nan", "-1", "0", "much"):
        done = run(KERNELS / "layernorm.py", "--set", "M=3,N=256", "--tolerance", text)
        assert done.returncode == 2 and f"--tolerance: '{text}' is no finite number above zero" in done.stderr, (text, done.stdout, done.stderr)


def test_a_given_tolerance_judges():
    assert run(KERNELS / "layernorm.py", "--set", "M=3,N=256", "--tolerance", "1e-9").returncode == 1


@pytest.mark.parametrize("contents, words", [('{"X": [1, 2]}', "X has 768 elements; 2 values were given"), ('{"Z": [1]}', "no input named 'Z'"), ('{"Y": [1]}', "no input named 'Y'"),
                                             ('{"X": "a"}', "lists of numbers"), ('{"X": ["a"]}', "lists of numbers"), ('[1]', "lists of numbers"), ('{', "lists of numbers")])
def test_inputs_that_do_not_fit_are_refused(tmp_path, contents, words):
    file = tmp_path / "given.json"
    file.write_text(contents)
    done = run(KERNELS / "softmax.py", "--set", "M=3,N=256", "--inputs", file)
    assert done.returncode == 2 and words in done.stderr, done.stdout + done.stderr


def test_a_scalar_that_is_not_there_is_refused():
    done = run(KERNELS / "softmax.py", "--set", "M=3,N=256", "--scalar", "eps=1")
    assert done.returncode == 2 and "no scalar parameter named 'eps'" in done.stderr
