"""Convolutions in f32 registers, and products of few rows: by hand and by chance, each proved, and right on the emulator."""
import os
import random
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import one_graph  # noqa: E402
from one_graph import graph, leaf, node  # noqa: E402


def generated(inputs, nodes, folder, tolerance, *more):
    return one_graph.generated(graph(inputs, nodes), folder, tolerance, *more)[0]


def convolution(x, results, kernel, after="relu", **attributes):
    """A convolution with a bias and one operator behind it; None: the window is larger than its input."""
    dims = len(kernel)
    a = dict(stride=[1] * dims, padding=[0] * dims, dilation=[1] * dims, groups=1, transposed=False, output_padding=[0] * dims, tf32=False) | attributes
    sizes = zip(x[2:], kernel, a["stride"], a["padding"], a["dilation"])
    if a["transposed"]:
        out = [(n - 1) * s - 2 * p + d * (k - 1) + 1 for n, k, s, p, d in sizes]
    else:
        out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in sizes]
    if min(out) < 1:
        return None
    out = [x[0], results, *out]
    weight = [x[1], results // a["groups"], *kernel] if a["transposed"] else [results, x[1] // a["groups"], *kernel]
    return [leaf("x", x), leaf("w", weight), leaf("b", [results])], [node("y", "conv", ["x", "w", "b"], out, **a), node("z", after, ["y"], out)]


@pytest.mark.parametrize("x, results, kernel, attributes", [
    ([1, 3, 4, 8, 31], 16, [3, 3, 3], {}),
    ([1, 3, 5, 7, 33], 24, [3, 3, 3], {"padding": [1, 1, 1]}),
    ([2, 3, 9, 40], 20, [3, 3], {"padding": [1, 1]}),
    ([1, 3, 11, 70], 8, [3, 5], {"stride": [2, 2], "padding": [1, 2]}),
    ([1, 2, 12, 36], 9, [3, 3], {"dilation": [2, 3]}),
    ([1, 6, 7, 35], 16, [2, 3], {"groups": 2}),
    ([1, 3, 4, 5, 6], 16, [3, 3, 1], {}),
    ([1, 3, 200], 16, [3], {"padding": [1]}),
    ([1, 3, 3, 4, 9], 16, [3, 3, 3], {"transposed": True, "stride": [2, 2, 2], "padding": [1, 1, 1]}),
    ([1, 3, 3, 4, 8], 16, [4, 4, 4], {"transposed": True, "stride": [2, 2, 2], "padding": [1, 1, 1]}),
])
def test_convolution(x, results, kernel, attributes, tmp_path):
    inputs, nodes = convolution(x, results, kernel, **attributes)
    text = generated(inputs, nodes, tmp_path, 2e-6)
    assert "layout=tw.rows()" in text and "tw.mma(" not in text


@pytest.mark.parametrize("rounding", [True, "even"])
def test_rounded_operands(rounding, tmp_path):
    """tf32 operands: both roundings are stated; sums of such products differ from f32's by some 2^-11."""
    inputs, nodes = convolution([1, 3, 3, 4, 9], 16, [3, 3, 3], transposed=True, stride=[2, 2, 2], padding=[1, 1, 1], tf32=rounding)
    text = generated(inputs, nodes, tmp_path, 8e-3)
    assert "layout=tw.rows()" in text and "x.to(tf32).to(f32)" in text and ("8192.0" in text) == (rounding == "even")


@pytest.mark.parametrize("x, kernel, attributes", [
    ([2, 4, 9, 33], [3, 3], {"padding": [1, 1]}), ([1, 3, 12, 300], [3, 7], {}), ([1, 2, 17, 20], [3, 1], {}), ([1, 2, 10, 40], [3, 3], {"stride": [2, 2]}),
    ([1, 2, 11, 21], [3, 3], {"dilation": [2, 2], "padding": [2, 1]}), ([1, 2, 5, 6, 20], [3, 3, 3], {"padding": [1, 1, 1]}), ([2, 3, 70], [5], {"padding": [2]}),
])
def test_depthwise(x, kernel, attributes, tmp_path):
    """One chain of multiply-adds, rows of the window first: where what follows rounds its operands, the last bit of this sum counts."""
    inputs, nodes = convolution(x, x[1], kernel, groups=x[1], **attributes)
    text = generated(inputs, nodes, tmp_path, 1e-6)
    assert text.count("tw.fma(x, w[") == 1 and "part" not in text


@pytest.mark.parametrize("m, n, k, after", [(33, 300, 68, "relu"), (16, 129, 100, "gelu"), (5, 257, 36, "tanh")])
def test_few_rows(m, n, k, after, tmp_path):
    """Three products of tf32 parts: the error is f32's own (one alone would leave some 5e-4)."""
    nodes = [node("y", "linear", ["a", "w", "b"], [m, n]), node("z", after, ["y"], [m, n])]
    text = generated([leaf("a", [m, k]), leaf("w", [n, k]), leaf("b", [n])], nodes, tmp_path, 2e-6, "--large", "1")
    assert "x_again" in text and "A_low" in text


@pytest.mark.parametrize("seed", range(int(os.environ.get("TILEWRIGHT_GRAPHS", "10"))))
def test_drawn(seed, tmp_path):
    """Attributes and shapes by chance: few channels, any window; which template takes them is its own affair, the result must be right and proved."""
    r = random.Random(f"direct/{seed}")
    made = None
    while made is None:
        dims, transposed, groups = r.randint(1, 3), r.random() < 0.3, r.choice([1, 1, 1, 2, 3])
        kernel = [r.randint(1, 4 if dims < 3 else 3) for _ in range(dims)]
        attributes = {"padding": [r.randint(0, k - 1) for k in kernel], "dilation": [r.randint(1, 2) for _ in kernel], "stride": [r.randint(1, 2) for _ in kernel]}
        x = [r.randint(1, 2), groups * r.randint(1, 3)] + [r.randint(3, 7) for _ in range(dims - 1)] + [r.randint(5, 70)]
        made = convolution(x, groups * r.randint(1, 20), kernel, r.choice(["relu", "tanh", "copy"]), transposed=transposed, groups=groups, **attributes)
    generated(*made, tmp_path, 5e-6)
