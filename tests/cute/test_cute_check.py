"""`tilewright check FILE.cu`: broken CuTe kernels get the specific word, sound ones none, and nothing is called proved."""
import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
HERE = SOURCE / "tests" / "cute"
HEADERS = next(SOURCE.glob(".deps/venv/lib/python3*/site-packages/cutlass_library/source"), None)
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")


def check(*words):
    return subprocess.run([PROGRAM, "check", *map(str, words)], capture_output=True, text=True, timeout=120)


# The first line of a file says which code it gets, and words of the message.
@pytest.mark.parametrize("path", sorted((HERE / "broken").glob("*.cu")), ids=lambda p: p.stem)
def test_a_broken_kernel_gets_its_word(path):
    _, _, code, words = path.read_text().splitlines()[0].split(" ", 3)
    ran = check(path)
    said = [line for line in ran.stdout.splitlines() if f"[{code}]" in line]
    assert any(re.search(words, line) for line in said), ran.stdout + ran.stderr
    errors = {found for found in re.findall(r"error\[(TW\d+)\]", ran.stdout)}
    assert errors <= {code}, "nothing else is wrong with it"
    assert ran.returncode == (1 if errors else 3)
    assert "hint:" in ran.stdout


# Broken too, in ways that are not looked at: the report says so. The first line has words of what it says.
@pytest.mark.parametrize("path", sorted((HERE / "unseen").glob("*.cu")), ids=lambda p: p.stem)
def test_what_is_not_seen_is_said(path):
    words = path.read_text().splitlines()[0].split(": ", 1)[1]
    ran = check(path)
    assert ran.returncode == 3 and any("not analysed: " in line and words in line for line in ran.stdout.splitlines()), ran.stdout


@pytest.mark.parametrize("path", sorted((HERE / "good").glob("*.cu")), ids=lambda p: p.stem)
def test_a_sound_kernel_is_not_accused(path):
    ran = check(path)
    assert ran.returncode == 3 and "error[" not in ran.stdout, ran.stdout
    assert "not proved" in ran.stdout and "verdict: proved" not in ran.stdout


def test_the_report_says_what_was_covered_and_what_was_not(tmp_path):
    (tmp_path / "k.cu").write_text("""#include <cute/tensor.hpp>
using namespace cute;
using S = Layout<Shape<_8, _16>, Stride<_16, _1>>;
template <int N> using Unknown = Layout<Shape<Int<N>, _16>>;
__global__ void k(float* p) {
  auto run_time = make_layout(make_shape(blockDim.x, 4));
}
""")
    ran = check(tmp_path / "k.cu", "--json")
    report = json.loads(ran.stdout)
    assert report["verdict"] == "not proved" and ran.returncode == 3
    assert {n["name"] for n in report["not_analysed"]} >= {"run_time"}
    assert all(n["why"] for n in report["not_analysed"])


def test_the_skeleton_is_run_where_it_can_be_and_named_where_not():
    """Kernels whose barriers hang on integers alone are followed; a pipeline class or a flag in memory is named as the reason why not."""
    for name in ("full_and_empty_barriers", "two_consumer_warpgroups", "mbarriers_in_ptx", "warpgroups_take_turns", "ring_filled_by_a_lambda", "ring_with_register_double_buffer"):
        report = json.loads(check(HERE / "good" / f"{name}.cu", "--json").stdout)
        assert [c for c in report["covered"] if c["what"] == "skeleton"], name
        assert not [n for n in report["not_analysed"] if "arrivals" in n["why"] or "stage of it" in n["why"]], (name, report["not_analysed"])


def test_what_hangs_on_data_is_not_followed(tmp_path):
    text = (HERE / "good" / "two_consumer_warpgroups.cu").read_text()
    (tmp_path / "k.cu").write_text(text.replace("int const tiles = K / BK;", "int const tiles = int(float(C[0]));"))
    said = check(tmp_path / "k.cu").stdout
    assert "how many arrivals" in said and "Not followed: how often a loop goes round" in said and "error[" not in said


def test_odd_texts_end_in_words(tmp_path):
    texts = {"empty": "", "deep": "(" * 100000, "angle": "a<" * 50000, "self": "using A = B; using B = A; auto x = make_layout(A{});",
             "brace": "__global__ void k() {" * 3000, "zero": "auto l = Layout<Shape<_0>, Stride<_1>>{};", "huge": "auto l = Layout<Shape<Int<99999999>, Int<99999999>>, Stride<_1, Int<99999999>>>{};",
             "binary": "\x00\x01\xff" * 1000, "quote": "\"" * 9999, "assigns": "x = " * 100000, "calls": "x = (" * 60000, "bounds": "__launch_bounds__(" * 60000, "angles": "auto x = a<b<" * 40000, "statement": "__global__ void k() { " + "copy(a, b) , " * 40000, "loop": "__global__ void k() { " + "for (;;) { " * 60 + "__syncthreads(); " + "}" * 61}
    for name, text in texts.items():
        (tmp_path / f"{name}.cu").write_text(text, errors="surrogateescape")
        ran = check(tmp_path / f"{name}.cu")
        assert ran.returncode in (1, 3), (name, ran.returncode, ran.stderr[-300:])


@pytest.mark.skipif(HEADERS is None, reason="CUTLASS's examples are not installed (scripts/setup.sh)")
def test_kernels_that_others_wrote_are_not_accused():
    """The tutorial kernels that come with the headers: they are right, so nothing may be called wrong, and something must be covered."""
    files = sorted((HEADERS / "examples/cute/tutorial").rglob("*.cu"))
    if not files:
        pytest.skip("the package has no examples")
    covered = 0
    for path in files:
        report = json.loads(check(path, "--json").stdout)
        assert report["errors"] == 0, (path.name, report["diagnostics"])
        covered += len(report["covered"])
    assert covered >= 3 * len(files)


# What nvcc said of two kernels: a vector along the wrong mode, an MMA of another type.
@pytest.mark.parametrize("log, line, words, layout", [
    ("vectorize", 9, "src failed to vectorize", "SrcLayout = ((8,1),1,1):((128,0),0,0)"),
    ("operands", 11, "size<1>(A) == size<1>(C)", None),
])
def test_a_log_is_cut_down_to_what_matters(tmp_path, log, line, words, layout):
    (tmp_path / "k.cu").write_text("// nothing\n")
    ran = check(tmp_path / "k.cu", "--log", HERE / "logs" / f"{log}.log", "--json")
    assert ran.returncode == 1
    errors = json.loads(ran.stdout)["compile_errors"]
    assert errors and errors[0]["line"] == line and errors[0]["file"].endswith(".cu"), errors
    assert words in errors[0]["message"] + errors[0]["assertion"] and errors[0]["hint"]
    if layout:
        assert layout in errors[0]["types"]


# One line of what nvcc, NVRTC and ptxas say, and the fix that is named.
@pytest.mark.parametrize("line, hint", [
    ('k.cu(9): error: identifier "LayoutRigth" is undefined', "not known here"),
    ('k.cu(9): error: class "cute::tuple<int, int>" has no member "with"', "not known here"),
    ('k.cu(9): catastrophic error: cannot open source file "cute/tensor.hpp"', "-I"),
    ("k.cu:1:10: fatal error: cute/tensor.hpp: No such file or directory", "-I"),
    ("k.cu(9): error: expression must be a modifiable lvalue", "const"),
    ("ptxas error   : Entry function 'k' uses too much shared data (0x18000 bytes, 0xc000 max)", "48 KiB"),
    ("ptxas /tmp/k.ptx, line 31; error   : Instruction 'wgmma.fence' cannot be compiled for architecture 'sm_90'", "sm_90a"),
    ('k.cu(9): error: static assertion failed with "Dynamic owning tensors not supported"', "run-time extents"),
    ('k.cu(9): error: calling a constexpr __host__ function("size") from a __device__ function is not allowed. The experimental flag '
     "'--expt-relaxed-constexpr' can be used to allow this.", "--expt-relaxed-constexpr"),
])
def test_kinds_of_errors_get_their_fix(tmp_path, line, hint):
    (tmp_path / "k.cu").write_text("// nothing\n")
    (tmp_path / "log").write_text(line + "\n")
    ran = check(tmp_path / "k.cu", "--log", tmp_path / "log", "--json")
    errors = json.loads(ran.stdout)["compile_errors"]
    assert ran.returncode == 1 and len(errors) == 1 and hint in errors[0]["hint"], errors


def test_odd_logs_end_in_words(tmp_path):
    (tmp_path / "k.cu").write_text("// nothing\n")
    for text in ("", "a.cu(1): error: " + "cute::Layout<" * 20000, "(((" * 9999, "k.cu(99999999999): error: x\n", "k.cu(1): error: cute::C<cute::C<1\n" * 5000):
        (tmp_path / "log").write_text(text)
        assert check(tmp_path / "k.cu", "--log", tmp_path / "log").returncode in (1, 3)
    assert check(tmp_path / "k.cu", "--log", tmp_path / "missing").returncode == 2
