"""Transposed convolutions with strides: the remainders of a row in one kernel as lines of the output, positions without a tap among them; and windows with dimensions that have none."""
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


@pytest.mark.parametrize("columns, length", [(64, 129), (65, 130), (65, 131), (40, 81)])
def test_lines_need_not_divide_by_the_stride(columns, length, tmp_path):
    """Remainders of unequal extents: what they store ends with the line. Odd rows begin at any address."""
    text, plan = generated(tmp_path, [2, 32, 4, columns], [32, 32, 3 if length % 2 else 2, 3 if length % 2 else 2], [2, 32, 9 if length % 2 else 8, length], "--large", "1",
                           stride=[2, 2], transposed=True, tf32="even", output_padding=[0, 0] if length - 2 * columns < 3 else [1, 1])
    assert sum(launch["family"] == "transposed convolution" for launch in plan["launches"]) == 2
    assert "line = tw.overlay(so" in text


@pytest.mark.parametrize("shape, kernel, padding, index", [
    ([2, 8, 3, 5, 33], [3, 3, 3], 1, True), ([1, 8, 3, 4, 32], [3, 3, 3], 0, True), ([2, 16, 7, 41], [3, 3], 1, True), ([1, 8, 5, 66], [4, 4], 1, False), ([1, 8, 3, 5, 33], [2, 2, 2], 0, True),
])
def test_odd_rows_begin_where_a_launch_may(shape, kernel, padding, index, tmp_path):
    """Rows of 65 or 66 elements: every second one begins between multiples of 16 bytes. The launch is given all of them, and the kernel's index is odd."""
    dims = len(kernel)
    out = [shape[0], 16] + [(n - 1) * 2 - 2 * padding + k for n, k in zip(shape[2:], kernel)]
    text, plan = generated(tmp_path, shape, [shape[1], 16, *kernel], out, "--large", "1", stride=[2] * dims, padding=[padding] * dims, output_padding=[0] * dims, transposed=True, tf32="even")
    written = [launch["arguments"][-1] for launch in plan["launches"] if launch["family"] == "transposed convolution"]
    assert len(written) == 2 ** (dims - 1) and "line = tw.overlay(so" in text
    assert any(len(y["shape"]) > len(written[0]["shape"]) for y in written) == index
    assert not one_graph.refused(plan)


def test_a_view_between_vectors_is_seen():
    argument = {"buffer": "x", "offset": 2, "strides": [6, 1]}
    plan = {"inputs": [{"name": "x", "dtype": "f32"}], "parameters": [], "buffers": {}, "launches": [{"kernel": "k", "arguments": [argument]}]}
    assert one_graph.refused(plan) == [("k", "x", 2)]
    assert not one_graph.refused(plan | {"launches": [{"kernel": "k", "arguments": [argument | {"offset": 4}, argument | {"strides": [6, 2]}]}]})


@pytest.mark.parametrize("length, kernel, stride, padding, dilation", [(90, 3, 2, 1, 2), (70, 4, 3, 0, 3), (66, 5, 4, 2, 1), (80, 2, 5, 0, 1), (70, 3, 3, 1, 2), (131, 4, 2, 1, 3)])
def test_remainders_without_taps_are_zeros_of_the_same_lines(length, kernel, stride, padding, dilation, tmp_path):
    """Nothing is stored twice: one launch writes the output."""
    out = (length - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1
    text, plan = generated(tmp_path, [2, 16, length], [16, 24, kernel], [2, 24, out], "--large", "1", stride=[stride], padding=[padding], dilation=[dilation], transposed=True, tf32="even")
    assert sum(launch["family"] == "transposed convolution" for launch in plan["launches"]) == 1
    met = {(t * dilation - padding) % stride for t in range(kernel)}
    assert text.count("tw.zeros(f32, (8, ") == stride - len(met)


def test_lines_without_taps_are_launches_of_their_own(tmp_path):
    _, plan = generated(tmp_path, [2, 16, 5, 40], [16, 16, 3, 3], [2, 16, 25, 200], "--large", "1", stride=[5, 5], dilation=[2, 2], output_padding=[0, 0], transposed=True)
    written = [launch for launch in plan["launches"] if launch["family"] == "transposed convolution"]
    assert len(written) == 5


def test_positions_without_a_tap_are_filled_once(tmp_path):
    _, plan = generated(tmp_path, [2, 16, 5, 40], [16, 16, 3, 3], [2, 16, 25, 200], stride=[5, 5], dilation=[2, 2], output_padding=[0, 0], transposed=True)
    names = [launch["kernel"] for launch in plan["launches"] if launch["family"] == "transposed convolution"]
    assert names[0].endswith("_none") and len(names) == 10, names


@pytest.mark.parametrize("more", [(), ("--large", "1")])
@pytest.mark.parametrize("kernel, padding", [([3, 3, 1], [0, 0, 0]), ([3, 3, 1], [1, 1, 0]), ([1, 1, 1], [0, 0, 0]), ([2, 1, 1], [0, 0, 0])])
def test_dimensions_without_a_window(kernel, padding, more, tmp_path):
    shape = [2, 12, 9, 11, 10]
    out = [2, 16] + [n + 2 * p - k + 1 for n, p, k in zip(shape[2:], padding, kernel)]
    generated(tmp_path, shape, [16, 12, *kernel], out, *more, padding=padding)
