"""Strided transposed convolutions whose rows are shorter than a chunk: several rows lie in one tile of the matrix unit. And folds over rows that are no whole vectors, of which several that follow one another are."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import one_graph  # noqa: E402
from one_graph import graph, leaf, node  # noqa: E402


def convolved(folder, shape, results, kernel, after=("relu",), **attributes):
    rank = len(shape) - 2
    given = {"stride": [1] * rank, "padding": [0] * rank, "dilation": [1] * rank, "groups": 1} | attributes
    stride, padding, dilation = given["stride"], given["padding"], given["dilation"]
    if given.get("transposed"):
        given.setdefault("output_padding", [0] * rank)
        out = [(n - 1) * s - 2 * p + d * (k - 1) + 1 + o for n, s, p, d, k, o in zip(shape[2:], stride, padding, dilation, kernel, given["output_padding"])]
    else:
        out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, s, p, d, k in zip(shape[2:], stride, padding, dilation, kernel)]
    out = [shape[0], results, *out]
    weight = [shape[1], results] if given.get("transposed") else [results, shape[1]]
    nodes = [node("y", "conv", ["x", "w", "bias"], out, **given)] + [node(f"e{i}", op, ["y" if i == 0 else f"e{i - 1}"], out) for i, op in enumerate(after)]
    made = graph([leaf("x", shape)], nodes, parameters=[leaf("w", weight + list(kernel)), leaf("bias", [results])])
    return one_graph.generated(made, folder, 6e-3, "--large", "1")[:2]


@pytest.mark.parametrize("shape, results, kernel, attributes", [
    ([2, 8, 12, 14], 16, [3, 3], dict(padding=[1, 1])), ([2, 4, 5, 9, 10], 16, [3, 3, 3], dict(padding=[1, 1, 1], tf32=True)), ([1, 8, 20, 12], 16, [3, 3], dict(dilation=[1, 2])), ([1, 12, 6, 20], 16, [3, 3], dict(tf32=False)),
])
def test_rows_of_plain_convolutions_are_parts_of_chunks(shape, results, kernel, attributes, tmp_path):
    text, _ = convolved(tmp_path, shape, results, kernel, **attributes)
    assert "tw.wgmma(acc0" in text and "sr = tw.overlay" not in text


@pytest.mark.parametrize("shape, results, kernel, attributes", [
    ([2, 16, 9, 16], 16, [4, 4], dict(stride=[2, 2], padding=[1, 1])), ([1, 8, 9, 9], 24, [3, 3], dict(stride=[2, 3], padding=[1, 0])), ([1, 8, 3, 9, 12], 16, [3, 3, 3], dict(stride=[2, 2, 2], padding=[1, 1, 1], output_padding=[1, 1, 1])),
    ([1, 8, 6, 31], 16, [2, 2], dict(stride=[2, 2])), ([2, 4, 18, 7], 130, [2, 2], dict(stride=[1, 2])), ([1, 8, 10, 20], 16, [3, 3], dict(stride=[2, 2], dilation=[1, 3])),
])
def test_lines_of_short_rows(shape, results, kernel, attributes, tmp_path):
    text, _ = convolved(tmp_path, shape, results, kernel, after=("sigmoid",), transposed=True, **({"tf32": "even"} | attributes))
    assert "sr = tw.overlay(sx" in text and "line = tw.overlay(so" in text


@pytest.mark.parametrize("op", ["sum", "mean", "amax", "amin"])
@pytest.mark.parametrize("shape, dim, rows", [([2, 256, 259], 1, 4), ([1, 256, 258], 1, 2), ([512, 257], 0, 4), ([2, 128, 3, 86], 1, 2)])
def test_folds_over_rows_of_odd_length(op, shape, dim, rows, tmp_path):
    out = shape[:dim] + shape[dim + 1:]
    text, plan, report = one_graph.generated(graph([leaf("x", shape)], [node("y", op, ["x"], out, dims=[dim])]), tmp_path, 1e-5, "--large", "1")
    assert report["composition"] == "proved" and len(plan["launches"]) == 2
    inner = 1
    for n in shape[dim + 1:]:
        inner *= n
    assert plan["launches"][0]["arguments"][0]["shape"][-1] == rows * inner and inner * rows % 4 == 0


def test_folds_of_whole_vectors_are_one_launch(tmp_path):
    _, plan, _ = one_graph.generated(graph([leaf("x", [2, 256, 260])], [node("y", "sum", ["x"], [2, 260], dims=[1])]), tmp_path, 1e-5, "--large", "1")
    assert len(plan["launches"]) == 1
