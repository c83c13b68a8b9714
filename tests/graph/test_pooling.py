"""Pooling by rows in registers and lines in shared memory: by hand and by chance, each proved, and right on the emulator."""
import os
import random
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import one_graph  # noqa: E402
from one_graph import graph, leaf, node  # noqa: E402


def generated(inputs, nodes, folder):
    return one_graph.generated(graph(inputs, nodes), folder, 1e-5)[0]


def pooled(op, x, kernel, stride, padding, dilation, after=None):
    """A pool and, where it is asked for, an operator behind it; None: the window is larger than its input."""
    out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, k, s, d in zip(x[2:], padding, kernel, stride, dilation)]
    if min(out) < 1:
        return None
    more = {"dilation": dilation} if op == "max_pool" else {}
    nodes = [node("y", op, ["x"], x[:2] + out, dims=len(kernel), kernel=kernel, stride=stride, padding=padding, **more)]
    if after:
        nodes.append(node("z", after, ["y"], x[:2] + out))
    return [leaf("x", x)], nodes


@pytest.mark.parametrize("op, x, kernel, stride, padding, dilation, after", [
    ("max_pool", [2, 4, 13, 33], [4, 4], [1, 1], [1, 1], [1, 1], None),       # rows of the last block that are not there; odd lines
    ("max_pool", [1, 8, 17, 18, 33], [3, 3, 3], [2, 2, 2], [0, 0, 1], [3, 3, 3], None),
    ("avg_pool", [2, 8, 6, 7, 20], [3, 3, 3], [2, 2, 2], [1, 1, 1], [1, 1, 1], "relu"),
    ("avg_pool", [1, 2, 1500], [8], [1], [4], [1], None),                     # lines in pieces
    ("max_pool", [1, 2, 3000], [8], [1], [4], [3], "tanh"),
    ("max_pool", [1, 1, 5, 1301], [3, 3], [1, 2], [0, 1], [1, 2], None),      # pieces of strided lines, several rows
    ("avg_pool", [2, 4, 24, 32], [2, 2], [2, 2], [0, 0], [1, 1], "relu"),     # windows side by side
    ("avg_pool", [2, 2, 8, 64], [1, 5], [1, 3], [0, 2], [1, 1], None),        # rows that are not folded
    ("max_pool", [2, 2, 12, 64], [5, 1], [3, 1], [2, 0], [1, 1], None),       # lines that are not
])
def test_pool(op, x, kernel, stride, padding, dilation, after, tmp_path):
    text = generated(*pooled(op, x, kernel, stride, padding, dilation, after), tmp_path)
    assert "tw.shared" in text  # the template that this is a test of


@pytest.mark.parametrize("x, kernel, stride, padding, dilation", [
    ([1, 8, 9, 10, 17], [3, 3, 3], [2, 2, 2], [1, 1, 1], [3, 3, 3]),
    ([1, 1, 5, 1301], [3, 5], [1, 2], [1, 2], [1, 2]),
])
def test_pool_of_many_edges(x, kernel, stride, padding, dilation, tmp_path):
    """Blocks with more edges than the verifier tells apart: another template takes their place."""
    generated(*pooled("max_pool", x, kernel, stride, padding, dilation), tmp_path)


def test_random_pools(tmp_path):
    r = random.Random(11)
    taken = 0
    for i in range(int(os.environ.get("TILEWRIGHT_GRAPHS", "10"))):
        dims = r.randint(1, 3)
        x = [r.choice([1, 2]), r.choice([4, 8, 12])] + [r.randint(4, 11) for _ in range(dims - 1)] + [r.choice([17, 32, 45, 64, 130])]
        kernel = [r.randint(1, 4) for _ in range(dims)]
        op = r.choice(["max_pool", "avg_pool"])
        dilation = [r.randint(1, 3) if op == "max_pool" else 1 for _ in range(dims)]
        made = pooled(op, x, kernel, [r.randint(1, 3) for _ in range(dims)], [r.randint(0, k // 2) for k in kernel], dilation, r.choice([None, "tanh"]))
        if made is None:
            continue
        folder = tmp_path / str(i)
        folder.mkdir()
        taken += "tw.shared" in generated(*made, folder)
    assert taken > 0
