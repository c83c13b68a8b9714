"""Sizes that a graph leaves open: one set of kernels, proved for all of their values, and right for those that are tried."""
import json
import pathlib
import subprocess
import sys

import numpy
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from one_graph import PROGRAM  # noqa: E402
from open_graphs import CASES, G, leaf, node  # noqa: E402
from torch_rules import _open_sizes, run  # noqa: E402

# Whose kernels see all tensors as the graph does: their program is proved, too.
WHOLE = {"pointwise 1d", "last open", "softmax", "softmax open", "layernorm", "mean over open", "mean over open rows", "var open", "linear", "linear bf16", "matmul k open", "embedding", "cumsum",
         "batch norm", "argmax", "ce", "padded"}
TOLERANCE = {"conv": 8e-3, "rms bf16": 2e-2, "linear bf16": 2e-2}  # roundings to tf32 and bf16


def generate(made, folder, *more):
    path = folder / "graph.json"
    path.write_text(json.dumps(made))
    return subprocess.run([PROGRAM, "generate", str(path), "--json", "-o", str(folder / "out"), *more], capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("name", CASES)
def test_family(name, tmp_path):
    done = generate(CASES[name], tmp_path, "--emulate")
    assert done.returncode == 0, done.stderr + done.stdout[-2000:]
    report = json.loads(done.stdout)
    assert report["proved"], [(k["kernel"], k.get("why", "")[:300]) for k in report["kernels"] if k["verdict"] != "proved"]
    assert report["emulated"]["worst"] < TOLERANCE.get(name, 1e-4) and len(report["emulated"]["sizes"]) == 3
    assert report["program"]["verdict"] == "proved" or name not in WHOLE, report["program"]
    text = (tmp_path / "out" / "kernels.py").read_text()
    for size in CASES[name]["sizes"]:
        assert f"S_{size['name']}" in text
    assert "tw.assume(" in text


@pytest.mark.parametrize("rows", [1, 2, 7, 130, 1024])
def test_launches_of_many_sizes(rows, tmp_path):
    r = numpy.random.default_rng(rows)
    x = r.standard_normal((rows, 40), numpy.float32)
    made = G([leaf("x", ["N", 40])], [node("y", "softmax", ["x"], ["N", 40], dim=1), node("t", "sum", ["y"], [40], dims=[0], keepdim=False)], outputs=["y", "t"])
    (y, t), report = run(made, {"x": x}, tmp_path)
    e = numpy.exp(x - x.max(1, keepdims=True))
    numpy.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5)
    numpy.testing.assert_allclose(t, (e / e.sum(1, keepdims=True)).sum(0), rtol=1e-4)
    assert report["program"]["verdict"] == "proved"


def test_two_sizes_of_which_only_the_product_counts(tmp_path):
    """A kernel over joined dimensions cannot tell one from the other: it has their product for a size."""
    x = numpy.random.default_rng(1).standard_normal((3, 11, 32), numpy.float32)
    w = numpy.random.default_rng(2).standard_normal((8, 32), numpy.float32)
    made = G([leaf("x", ["B", "T", 32]), leaf("w", [8, 32])], [node("y", "linear", ["x", "w"], ["B", "T", 8])], sizes=(("B", 2, 64), ("T", 2, 64)))
    (y,), _ = run(made, {"x": x, "w": w}, tmp_path)
    assert "S_B_T" in (tmp_path / "out" / "kernels.py").read_text()
    numpy.testing.assert_allclose(y, x @ w.T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("made, words", [
    # What is made of a size otherwise than by products would be a number in the kernels.
    (G([leaf("x", ["N", 8])], [node("y", "var", ["x"], [8], dims=[0], keepdim=False, correction=1)]), "hangs on the open sizes"),
    (G([leaf("x", [8, "N"]), leaf("y", [8, 3])], [node("z", "cat", ["x", "y"], [8, "N"], dim=1)]), "is said to have the shape"),
    (G([leaf("x", ["M", 8])], [node("y", "exp", ["x"], ["M", 8])]), "positive whole number"),
    (G([leaf("x", ["N*", 8])], [node("y", "exp", ["x"], ["N*", 8])]), "positive whole number"),
    (G([leaf("x", ["N", 8])], [node("y", "exp", ["x"], ["N", 8])], sizes=(("N", 1, 8),)), "without a range"),
    (G([leaf("x", ["N", 8])], [node("y", "exp", ["x"], ["N", 8])], sizes=(("N", 0, 64),)), "without a range"),
    (G([leaf("x", ["N", 8])], [node("y", "exp", ["x"], ["N", 8])], sizes=(("N", 1, 64), ("N", 1, 64))), "defined twice"),
    (G([leaf("x", ["N", 8])], [node("y", "exp", ["x"], ["N", 8])], sizes=(("N;", 1, 64),)), "letters and digits"),
])
def test_refused(made, words, tmp_path):
    done = generate(made, tmp_path)
    assert done.returncode == 2 and words in done.stderr, done.stderr


def test_numbers_of_a_graph_are_never_taken_for_a_size(tmp_path):
    """Whatever stands in for a size, numbers that are there stay: here the largest primes below `most`."""
    nodes = [node("y", "clamp", ["x"], ["N"], min=-1021.0, max=1019), node("z", "add", ["y", 1013], ["N"])]
    x = numpy.array([-2000, 5, 3000], numpy.float32)
    (z,), _ = run(G([leaf("x", ["N"])], nodes), {"x": x}, tmp_path)
    assert (z == numpy.clip(x, -1021, 1019) + 1013).all()


def test_sizes_of_shapes():
    plan = {"sizes": [{"name": "N"}, {"name": "M"}], "inputs": [{"shape": [["N", 4], 3]}, {"shape": [["N", "M"], ["M"]]}]}
    assert _open_sizes.sizes_of(plan, [(8, 3), (10, 5)]) == {"N": 2, "M": 5}
    assert _open_sizes.sizes_of(plan, [(8, 3), (11, 5)]) is None
    assert _open_sizes.sizes_of(plan, [(9, 3), (10, 5)]) is None
    assert _open_sizes.sizes_of(plan, [(8, 4), (10, 5)]) is None
