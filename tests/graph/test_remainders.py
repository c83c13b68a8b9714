"""Transposed convolutions with strides: the remainders of a row in one kernel where they divide it, positions without a tap filled once; and windows with dimensions that have none."""
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import one_graph  # noqa: E402
from one_graph import graph, leaf, node  # noqa: E402


def generated(folder, shape, kernel, out, *more, **attributes):
    dims = len(shape) - 2
    attributes = {"stride": [1] * dims, "padding": [0] * dims, "dilation": [1] * dims, "groups": 1} | attributes
    nodes = [node("y", "conv", ["x", "w", "bias"], out, **attributes), node("z", "relu", ["y"], out)]
    return one_graph.generated(graph([leaf("x", shape)], nodes, parameters=[leaf("w", kernel), leaf("bias", [out[1]])]), folder, 6e-3, *more)[:2]


@pytest.mark.parametrize("channels, results, rows, columns", [(64, 64, 6, 64), (8, 64, 5, 70), (32, 32, 4, 128), (16, 24, 3, 66)])
def test_remainders_of_a_row_are_one_kernel(channels, results, rows, columns, tmp_path):
    text, plan = generated(tmp_path, [2, channels, rows, columns], [channels, results, 3, 3], [2, results, 2 * rows, 2 * columns], "--large", "1",
                           stride=[2, 2], padding=[1, 1], output_padding=[1, 1], transposed=True, tf32="even")
    convolutions = [launch for launch in plan["launches"] if launch["family"] == "transposed convolution"]
    assert len(convolutions) == 2 and "P_x_1" in text
    assert not any(launch["family"] == "padding" for launch in plan["launches"]), "packing gives the input its zeros"


def test_rows_that_do_not_divide_are_kernels_of_their_own(tmp_path):
    _, plan = generated(tmp_path, [2, 32, 4, 64], [32, 32, 3, 3], [2, 32, 9, 129], "--large", "1", stride=[2, 2], transposed=True, tf32="even")
    assert sum(launch["family"] == "transposed convolution" for launch in plan["launches"]) == 4


def test_views_of_vectors_start_where_vectors_do(tmp_path):
    """Rows of 130: the second one begins at 8 past a multiple of 16 bytes, so its remainders stay apart."""
    _, plan = generated(tmp_path, [1, 32, 3, 65], [32, 32, 2, 2], [1, 32, 6, 130], "--large", "1", stride=[2, 2], transposed=True, tf32="even")
    for launch in plan["launches"]:
        for a in launch["arguments"]:
            if 1 in a["strides"] and any(n > 1 and s == 1 for n, s in zip(a["shape"], a["strides"])):
                assert a["offset"] % 4 == 0, a


@pytest.mark.parametrize("more", [(), ("--large", "1")])
def test_positions_without_a_tap_are_filled_once(more, tmp_path):
    _, plan = generated(tmp_path, [2, 16, 5, 40], [16, 16, 3, 3], [2, 16, 25, 200], *more, stride=[5, 5], dilation=[2, 2], output_padding=[0, 0], transposed=True)
    names = [launch["kernel"] for launch in plan["launches"] if launch["family"] == "transposed convolution"]
    assert names[0].endswith("_none") and len(names) == 10, names


@pytest.mark.parametrize("more", [(), ("--large", "1")])
@pytest.mark.parametrize("kernel, padding", [([3, 3, 1], [0, 0, 0]), ([3, 3, 1], [1, 1, 0]), ([1, 1, 1], [0, 0, 0]), ([2, 1, 1], [0, 0, 0])])
def test_dimensions_without_a_window(kernel, padding, more, tmp_path):
    shape = [2, 12, 9, 11, 10]
    out = [2, 16] + [n + 2 * p - k + 1 for n, p, k in zip(shape[2:], padding, kernel)]
    generated(tmp_path, shape, [16, 12, *kernel], out, *more, padding=padding)
