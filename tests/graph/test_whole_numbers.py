"""Whole numbers that f32 does not hold stay what they are, numbers without dimensions, and tensors without elements."""
import json
import pathlib
import subprocess
import sys

import numpy
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from one_graph import PROGRAM, graph, leaf, node  # noqa: E402
from torch_rules import run, written  # noqa: E402

# The first f32 does not hold, and both ends of i32.
NUMBERS = numpy.array([16777217, -16777219, 2147483647, -2147483648, 5, -7, 0, 1 << 20], numpy.int32)


def towards_zero(x, by):
    return numpy.sign(x.astype(numpy.int64)) * (numpy.abs(x.astype(numpy.int64)) // by)


RULES = [
    ("neg", [], {}, lambda x: -x), ("abs", [], {}, numpy.abs), ("sign", [], {}, numpy.sign), ("floor", [], {}, lambda x: x), ("square", [], {}, lambda x: x * x),
    ("pow", [3], {}, lambda x: x * x * x), ("clamp", [-16777217, 16777219], {}, lambda x: numpy.clip(x, -16777217, 16777219)), ("clamp_min", [16777217], {}, lambda x: numpy.maximum(x, 16777217)),
    ("hardtanh", [-3, 16777217], {}, lambda x: numpy.clip(x, -3, 16777217)), ("fmod", [5], {}, lambda x: x - 5 * towards_zero(x, 5)),
    ("fmod", [-4], {}, lambda x: x - 4 * towards_zero(x, 4)), ("div", [3], {"rounding_mode": "trunc"}, lambda x: towards_zero(x, 3)),
]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("op, more, keywords, expected", RULES)
def test_elementwise(op, more, keywords, expected, dtype, tmp_path):
    x = NUMBERS.astype(dtype)
    with numpy.errstate(over="ignore"):
        wanted = expected(x).astype(dtype)
    if dtype == "int64" and op in ("pow", "square"):
        x, wanted = x[4:], wanted[4:]  # the emulator holds 53 bits
    (y,), _ = run(written(op, {"x": x}, [(x.shape, dtype)], ["x", *more], keywords), {"x": x}, tmp_path)
    assert (y == wanted).all(), (x, y, wanted)


@pytest.mark.parametrize("op, diagonal", [("triu", 1), ("tril", 0), ("triu", -2)])
def test_triangles(op, diagonal, tmp_path):
    x = numpy.arange(20).reshape(4, 5) + (1 << 25)
    (y,), _ = run(written(op, {"x": x}, [(x.shape, "int64")], ["x", diagonal]), {"x": x}, tmp_path)
    assert (y == getattr(numpy, op)(x, diagonal)).all()


def test_a_choice_of_two_numbers(tmp_path):
    made = graph([leaf("x", [7])], [node("c", "gt", ["x", 0.0], [7]), node("a", "full", [], [], value=7), node("y", "where", ["c", "a", -2], [7])], "y")
    for entry, dtype in ((made["nodes"][0], "bool"), (made["nodes"][1], "i64"), (made["nodes"][2], "i64")):
        entry["dtype"] = dtype
    x = numpy.array([1, -1, 0, 3, -4, 5, 6], numpy.float32)
    (y,), _ = run(made, {"x": x}, tmp_path)
    assert (y == numpy.where(x > 0, 7, -2)).all()


def answer(made, folder):
    path = folder / "graph.json"
    path.write_text(json.dumps(made))
    return subprocess.run([PROGRAM, "generate", str(path), "--emulate"], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("op", ["neg", "abs", "square", "floor", "cumsum", "clamp", "triu"])
def test_what_f32_would_round_is_refused(op, tmp_path):
    made = graph([dict(leaf("x", [4, 5]), dtype="i64")], [dict(node("y", op, ["x"], [4, 5], dim=0, min=0), dtype="i64")])
    done = answer(made, tmp_path)
    assert done.returncode == 2 and "integers" in done.stderr, done.stderr


@pytest.mark.parametrize("op, dtype", [("softmax", "f32"), ("log_softmax", "f32"), ("cumsum", "f32"), ("cumprod", "f32"), ("argmax", "i64")])
def test_a_number_has_no_axis(op, dtype, tmp_path):
    done = answer(graph([leaf("x", [])], [dict(node("y", op, ["x"], [], dim=0), dtype=dtype)]), tmp_path)
    assert done.returncode == 2 and "no axis of a tensor of 0 dimensions" in done.stderr, done.stderr


@pytest.mark.parametrize("op, dtype, wanted", [("_softmax", "float32", 1), ("_log_softmax", "float32", 0), ("cumsum", "float32", 2.5), ("argmax", "int64", 0)])
def test_rules_of_a_number(op, dtype, wanted, tmp_path):
    x = numpy.array(2.5, numpy.float32)
    (y,), _ = run(written(op, {"x": x}, [((), dtype)], ["x", 0]), {"x": x}, tmp_path)
    assert y == wanted


def test_parts_without_elements(tmp_path):
    x = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
    made = written("cat", {"x": x, "none": x[:0]}, [((3, 4), "float32")], [["none", "x", "none"], 0])
    assert [p["name"] for p in made["inputs"]] == ["x"] and made["nodes"][-1]["inputs"] == ["x"]
    (y,), _ = run(made, {"x": x}, tmp_path)
    assert (y == x).all()


def test_a_query_that_sees_no_key(tmp_path):
    """torch gives 0 there, and no NaN."""
    r = numpy.random.default_rng(3)
    q, k = r.standard_normal((1, 1, 3, 8), numpy.float32), r.standard_normal((1, 1, 4, 8), numpy.float32)
    for m in (numpy.array([[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]], bool), numpy.array([[0, -1, 2, 0], [-numpy.inf] * 4, [1, 1, -numpy.inf, 1]], numpy.float32)):
        made = written("scaled_dot_product_attention", {"q": q, "k": k, "m": m}, [(q.shape, "float32")], ["q", "k", "k", "m"])
        (y,), _ = run(made, {"q": q, "k": k, "m": m}, tmp_path)
        scores = q[0, 0] @ k[0, 0].T / 8 ** 0.5 + (numpy.where(m, 0, -numpy.inf) if m.dtype == bool else m)
        for row in (0, 2):
            e = numpy.exp(scores[row] - scores[row].max())
            numpy.testing.assert_allclose(y[0, 0, row], e / e.sum() @ k[0, 0], rtol=1e-4, atol=1e-5)
        assert (y[0, 0, 1] == 0).all()


def test_logarithms_of_sums_of_nothing(tmp_path):
    x, y = numpy.array([-numpy.inf, 0, 3, -numpy.inf], numpy.float32), numpy.array([-numpy.inf, 1, -numpy.inf, 2], numpy.float32)
    (z,), _ = run(written("logaddexp", {"x": x, "y": y}, [((4,), "float32")], ["x", "y"]), {"x": x, "y": y}, tmp_path)
    numpy.testing.assert_allclose(z, numpy.logaddexp(x, y), rtol=1e-6)


def test_a_difference_of_what_was_rounded(tmp_path):
    """Where a product is rounded to bf16 before a difference, it is stored: nothing is said of the difference in one kernel."""
    shape, narrow = [6, 5], {"dtype": "bf16"}
    made = graph([dict(leaf("x", shape), **narrow)], [dict(node("y", "mul", ["x", 3.0], shape), **narrow), dict(node("z", "mse_loss", ["x", "y"], []), **narrow)])
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(made))
    done = subprocess.run([PROGRAM, "generate", str(path), "--json", "--emulate"], capture_output=True, text=True, timeout=60)
    report = json.loads(done.stdout)
    assert report["proved"], report["kernels"]
    assert report["emulated"]["worst"] < 2 ** -7
