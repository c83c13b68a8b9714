"""Concatenation, elements by index, parts of tensors, integers and truth values: any type is moved as it is, and every kernel is proved."""
import json
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from one_graph import PROGRAM, generated, graph, leaf, node  # noqa: E402


def typed(entry, dtype):
    return dict(entry, dtype=dtype)


# Inputs are drawn as f32: half a unit in the last place of the narrow type is between them and what is moved.
ROUNDED = {"f16": 2 ** -10, "bf16": 2 ** -7}


def refused(made, folder):
    path = folder / "graph.json"
    path.write_text(made if isinstance(made, str) else json.dumps(made))
    done = subprocess.run([PROGRAM, "generate", str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, done.stdout
    return done.stderr


@pytest.mark.parametrize("shapes, dim, dtype", [
    ([(3, 5), (3, 2)], 1, "f32"),        # the second part starts at no multiple of 16 bytes
    ([(3, 1), (3, 1), (3, 4)], -1, "bf16"),
    ([(2, 3, 4, 4), (2, 16, 4, 4)], 1, "f32"),
    ([(1, 7), (40, 7)], 0, "i64"),
    ([(6, 3), (6, 3)], 1, "bool"),
])
def test_parts_of_a_whole(shapes, dim, dtype, tmp_path):
    whole = list(shapes[0])
    whole[dim] = sum(s[dim] for s in shapes)
    inputs = [typed(leaf(f"x{i}", s), dtype) for i, s in enumerate(shapes)]
    made = graph(inputs, [typed(node("y", "cat", [i["name"] for i in inputs], whole, dim=dim), dtype)])
    _, plan, report = generated(made, tmp_path, ROUNDED.get(dtype, 1e-12))
    assert len(plan["launches"]) == len(shapes) and report["composition"] == "proved"


def test_a_part_that_is_a_number_is_not_stored(tmp_path):
    nodes = [node("edge", "full", [], (2, 3), value=1.5), node("z", "relu", ["x"], (2, 5)), node("y", "cat", ["edge", "z", "edge"], (2, 11), dim=1)]
    _, plan, report = generated(graph([leaf("x", (2, 5))], nodes), tmp_path, 1e-12)
    assert len(plan["buffers"]) == 2 and report["composition"] == "proved"  # the relu and the result


@pytest.mark.parametrize("op, x, index, dim, shape", [
    ("index_select", (11, 8), (3, 5), 0, (3, 5, 8)),      # an embedding: rows by a number
    ("index_select", (6, 11), (70,), 1, (6, 70)),         # along the last dimension: a tile of places
    ("index_select", (4, 11, 1), (3,), -2, (4, 3, 1)),
    ("gather", (6, 11), (6, 3), 1, (6, 3)),
    ("gather", (6, 11), (4, 9), 0, (4, 9)),
])
@pytest.mark.parametrize("dtype", ["f32", "f16", "i64"])
def test_elements_by_index(op, x, index, dim, shape, dtype, tmp_path):
    made = graph([typed(leaf("x", x), dtype), typed(leaf("i", index), "i64")], [typed(node("y", op, ["x", "i"], shape, dim=dim), dtype)])
    _, _, report = generated(made, tmp_path, ROUNDED.get(dtype, 1e-12))
    assert report["composition"] == "proved" or x[-1] == 1  # through a view of the source, a promised range is not followed


def test_constants_have_values(tmp_path):
    places = dict(leaf("i", (3,)), dtype="i64", values=[4, 0, 4])
    made = graph([leaf("x", (5, 7))], [node("y", "index_select", ["x", "i"], (3, 7), dim=0)], parameters=[places])
    _, plan, _ = generated(made, tmp_path, 1e-12)
    assert plan["parameters"][0]["values"] == [4, 0, 4]
    places["values"] = [4, 0]
    assert "2 `values` for the shape (3)" in refused(made, tmp_path)


@pytest.mark.parametrize("x, kernel, attributes", [
    ((2, 16, 1, 1), (4, 16, 1, 1), {}),                                            # what follows a global average
    ((2, 6, 5, 5), (4, 3, 5, 5), {"groups": 2}),
    ((2, 3, 3, 7), (4, 3, 3, 4), {"padding": [1, 0], "dilation": [2, 2]}),         # taps that lie apart, and some that meet nothing
])
def test_convolution_of_one_position(x, kernel, attributes, tmp_path):
    made = graph([leaf("x", x), leaf("k", kernel), leaf("b", (4,))], [node("y", "conv", ["x", "k", "b"], (2, 4, 1, 1), **attributes), node("z", "sigmoid", ["y"], (2, 4, 1, 1))])
    _, _, report = generated(made, tmp_path, 1e-5)
    assert report["composition"] == "proved"


@pytest.mark.parametrize("after", [
    node("y", "matmul", ["s", "k"], (2, 5, 6)),
    node("y", "conv", ["c", "w"], (2, 3, 5, 2), padding=[1, 0]),
    node("y", "max_pool", ["c"], (2, 5, 4, 3), dims=2, kernel=[2, 2], stride=[1, 1]),
])
def test_products_and_windows_of_parts(after, tmp_path):
    """Of a part of a longer tensor: it is stored first where a template takes none."""
    nodes = [node("s", "slice", ["x"], (2, 5, 4), starts=[0, 2, 3]), node("c", "slice", ["z"], (2, 5, 5, 4), starts=[0, 1, 2, 1]), after]
    inputs = [leaf("x", (2, 9, 8)), leaf("z", (2, 7, 8, 6)), leaf("k", (2, 4, 6)), leaf("w", (3, 5, 3, 3))]
    generated(graph(inputs, nodes), tmp_path, 6e-3)  # the convolution is in tf32


def test_two_parts_of_one_tensor(tmp_path):
    nodes = [node("a", "slice", ["x"], (3, 4, 5), starts=[0, 0, 0]), node("b", "slice", ["x"], (3, 4, 5), starts=[0, 4, 0]),
             node("s", "sigmoid", ["b"], (3, 4, 5)), node("y", "mul", ["a", "s"], (3, 4, 5))]
    generated(graph([leaf("x", (3, 8, 5))], nodes), tmp_path, 1e-6)


def test_truth_values_are_results(tmp_path):
    nodes = [typed(node("a", "gt", ["x", 0.1], (3, 5)), "bool"), typed(node("b", "logical_not", ["m"], (5,)), "bool"),
             typed(node("y", "logical_and", ["a", "b"], (3, 5)), "bool")]
    _, _, report = generated(graph([leaf("x", (3, 5)), typed(leaf("m", (5,)), "bool")], nodes), tmp_path, 1e-12)
    assert report["composition"] == "proved"


@pytest.mark.parametrize("dtype", ["i32", "i64"])
def test_integers_stay_integers(dtype, tmp_path):
    nodes = [typed(node("a", "mul", ["i", 16777217], (4, 6)), dtype), typed(node("b", "sub", ["a", "j"], (4, 6)), dtype), typed(node("y", "maximum", ["b", 3], (4, 6)), dtype)]
    inputs = [typed(leaf("i", (4, 6)), dtype), typed(leaf("j", (6,)), dtype)]
    _, _, report = generated(graph(inputs, nodes), tmp_path, 1e-12)
    assert report["composition"] == "proved"
    # In f32, 16777217 is 16777216.
    far = dict(leaf("i", (3,)), dtype=dtype, values=[16777216, 16777217, 16777218])
    made = graph([leaf("x", (3,))], [typed(node("s", "eq", ["i", 16777217], (3,)), "bool"), node("y", "where", ["s", 1.0, 0.0], (3,))], parameters=[far])
    generated(made, tmp_path, 1e-12)


def test_infinite_numbers(tmp_path):
    nodes = [node("a", "where", ["m", "-inf", "x"], (3, 8)), node("y", "softmax", ["a"], (3, 8), dim=-1)]
    made = graph([leaf("x", (3, 8)), typed(leaf("m", (3, 8)), "bool")], nodes)
    generated(made, tmp_path, 1e-6)
    assert 'write "inf" or "-inf"' in refused(json.dumps(made).replace('"-inf"', "-Infinity"), tmp_path)


@pytest.mark.parametrize("nodes, message", [
    ([node("y", "cat", ["x", "z"], (4, 9), dim=0)], "differs from the first in dimension 1"),
    ([node("y", "index_select", ["x", "x"], (4, 5, 5), dim=1)], "indices are i32 or i64"),
    ([node("y", "gather", ["x", "i"], (5, 5), dim=1)], "no larger than the input"),
    ([typed(node("y", "sum", ["i"], ()), "i64")], "a fold of integers"),
    ([typed(node("y", "remainder", ["i", -2], (5, 5)), "i64")], "a whole number above 0"),
])
def test_what_is_refused(nodes, message, tmp_path):
    assert message in refused(graph([leaf("x", (4, 5)), leaf("z", (4, 4)), typed(leaf("i", (5, 5)), "i64")], nodes), tmp_path)
