"""Attention in one kernel: proved, right on the emulator, and proved as a whole; what no template takes stays products and a softmax."""
import json
import os
import re
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import one_graph  # noqa: E402
from one_graph import PROGRAM, graph, leaf, node  # noqa: E402

TOLERANCE = {"f32": 4e-6, "f16": 4e-3, "bf16": 3e-2}


def typed(one, dtype):
    return dict(one, dtype=dtype)


def families(report):
    return [k["family"] for k in report["kernels"]]


def generated(made, folder, dtype, whole=True):
    text, plan, report = one_graph.generated(made, folder, TOLERANCE[dtype], "--large", "1")
    assert not whole or report["program"]["verdict"] == "proved", report["program"]
    return text, plan, report


def operator(dtype, queries, keys, depth, lead=(2, 2), mask=None, **attributes):
    q, k = [*lead, queries, depth], [*lead, keys, depth]
    inputs, names = [leaf("q", q), leaf("k", k), leaf("v", k)], ["q", "k", "v"]
    inputs = [typed(x, dtype) for x in inputs]
    if mask:
        inputs.append(typed(leaf("m", mask[0]), mask[1]))
        names.append("m")
    return graph(inputs, [typed(node("y", "attention", names, q, **attributes), dtype)], "y")


@pytest.mark.parametrize("dtype, queries, keys, depth, mask, causal", [
    ("bf16", 100, 72, 64, None, False), ("bf16", 20, 20, 32, None, True), ("f16", 130, 200, 128, None, True), ("bf16", 70, 33, 80, None, True),
    ("bf16", 65, 129, 256, None, False), ("bf16", 70, 72, 16, ([70, 72], "f32"), False), ("f16", 64, 64, 64, ([2, 1, 64, 64], "bool"), False),
    ("bf16", 70, 72, 64, ([2, 2, 70, 72], "f32"), True), ("f16", 20, 600, 32, None, False), ("f16", 40, 300, 64, ([40, 300], "bool"), False), ("f32", 100, 72, 64, None, False), ("f32", 70, 90, 96, None, True), ("f32", 20, 20, 8, None, True),
    ("f32", 70, 72, 40, ([2, 1, 70, 72], "bool"), False), ("f32", 66, 64, 128, ([66, 64], "f32"), False),
])
def test_operator(dtype, queries, keys, depth, mask, causal, tmp_path):
    text, plan, report = generated(operator(dtype, queries, keys, depth, mask=mask, causal=causal, scale=0.2), tmp_path, dtype)
    assert families(report) == (["split"] * 3 if dtype == "f32" else []) + ["attention"]
    assert max(len(b["shape"]) and b["shape"][-1] for b in plan["buffers"].values()) <= max(depth, queries, keys)
    assert not any(b["shape"][-2:] == [queries, keys] for b in plan["buffers"].values() if queries != keys)  # the scores are stored nowhere


def block(dtype, written, causal=True, batch=2, length=70, heads=2, depth=32):
    """One projection for queries, keys and values, attention, and another projection."""
    c = heads * depth
    rows, by_head = [batch, length, c], [batch, heads, length, depth]
    nodes = [node("qkv", "matmul", ["x", "w"], [batch, length, 3 * c])]
    for i, name in enumerate("qkv"):
        nodes += [node("s" + name, "slice", ["qkv"], rows, starts=[0, 0, i * c]), node("r" + name, "reshape", ["s" + name], [batch, length, heads, depth]),
                  node(name, "permute", ["r" + name], by_head, order=[0, 2, 1, 3])]
    inputs, scores = [leaf("x", rows)], [batch, heads, length, length]
    if written:
        inputs.append(leaf("mask", [1, 1, length + 32, length + 32]))
        nodes += [node("kt", "permute", ["k"], [batch, heads, depth, length], order=[0, 1, 3, 2]), node("att", "matmul", ["q", "kt"], scores), node("scaled", "mul", ["att", 0.17], scores),
                  node("part", "slice", ["mask"], [1, 1, length, length], starts=[0, 0, 0, 0]), typed(node("none", "lt", ["part", -1.0], [1, 1, length, length]), "bool"),
                  node("masked", "where", ["none", "-inf", "scaled"], scores), node("p", "softmax", ["masked"], scores, dim=-1), node("a", "matmul", ["p", "v"], by_head)]
    else:
        nodes.append(node("a", "attention", ["q", "k", "v"], by_head, causal=causal))
    nodes += [node("t", "permute", ["a"], [batch, length, heads, depth], order=[0, 2, 1, 3]), node("f", "reshape", ["t"], rows), node("y", "matmul", ["f", "o"], rows)]
    made = graph(inputs, [n if n["name"] in ("part", "none") else typed(n, dtype) for n in nodes], "y")
    made["inputs"] = [typed(x, dtype) if x["name"] == "x" else x for x in made["inputs"]]
    made["parameters"] = [typed(leaf("w", [c, 3 * c]), dtype), typed(leaf("o", [c, c]), dtype)]
    return made


@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_block(dtype, tmp_path):
    """Queries, keys and values are read where the projection leaves them, and the result is stored as the next projection takes it: no copies."""
    _, _, report = one_graph.generated(block(dtype, False), tmp_path, 0.02 if dtype == "f16" else 1e-5, "--large", "1")
    assert report["program"]["verdict"] == "proved", report["program"]
    assert [f for f in families(report) if f != "split"] == ["product", "attention", "product"]


@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_written_out(dtype, tmp_path):
    """Two products and a softmax, with a mask of data between them; in f16 the scores are rounded at each step, as the graph says."""
    text, _, report = one_graph.generated(block(dtype, True, length=64), tmp_path, 0.02 if dtype == "f16" else 1e-5, "--large", "1")
    assert [f for f in families(report) if f != "split"] == ["product", "attention", "product"]
    assert ("near" in text) == (dtype == "f16")


def test_grouped_heads(tmp_path):
    """Keys and values that several heads share are read where they lie."""
    shared, wide = [2, 2, 1, 70, 64], [2, 2, 3, 70, 64]
    nodes = []
    for name in "kv":
        nodes += [node(name + "1", "reshape", [name], shared), node(name + "2", "expand", [name + "1"], wide), node(name + "3", "reshape", [name + "2"], [2, 6, 70, 64])]
    nodes.append(node("y", "attention", ["q", "k3", "v3"], [2, 6, 70, 64], causal=True))
    made = graph([typed(leaf("q", [2, 6, 70, 64]), "bf16"), typed(leaf("k", [2, 2, 70, 64]), "bf16"), typed(leaf("v", [2, 2, 70, 64]), "bf16")], [typed(n, "bf16") for n in nodes], "y")
    _, plan, report = generated(made, tmp_path, "bf16")
    assert families(report) == ["attention"] and list(plan["launches"][0]["arguments"][1]["shape"]) == [2, 2, 70, 64]


@pytest.mark.parametrize("change", ["scores are an output", "probabilities are an output", "wide heads"])
def test_not_one_kernel(change, tmp_path):
    depth = 136 if change == "wide heads" else 32
    s, by_head = [2, 20, 24], [2, 20, depth]
    nodes = [node("kt", "permute", ["k"], [2, depth, 24], order=[0, 2, 1]), node("s", "matmul", ["q", "kt"], s), node("p", "softmax", ["s"], s, dim=2), node("y", "matmul", ["p", "v"], by_head)]
    made = graph([leaf("q", by_head), leaf("k", [2, 24, depth]), leaf("v", [2, 24, depth])], nodes, "y")
    made["outputs"] += {"scores are an output": ["s"], "probabilities are an output": ["p"]}.get(change, [])
    _, _, report = generated(made, tmp_path, "f32", whole=False)
    assert "attention" not in families(report)


WRONG = {
    "another scale": lambda t: re.sub(r"(let s_y\[.*) \* 0\.2", r"\1 * 0.25", t),
    "one key more": lambda t: re.sub(r"minimum\(i2 \+ 1, 72\)", "minimum(i2 + 2, 72)", t),
    "keys for values": lambda t: re.sub(r"f32\(a_v\[i0, i1, j, i3\]\)", "f32(a_k[i0, i1, j, i3])", t),
    "another sum": lambda t: re.sub(r"/ sum\(j in 0:minimum\(i2 \+ 1, 72\)", "/ sum(j in 0:72", t),
}


@pytest.mark.parametrize("what", sorted(WRONG))
def test_wrong_is_not_proved(what, tmp_path):
    text, _, _ = generated(operator("bf16", 70, 72, 64, causal=True, scale=0.2), tmp_path, "bf16")
    at = text.index("@tw.program")
    wrong = text[:at] + WRONG[what](text[at:])
    assert wrong != text, "nothing was changed"
    (tmp_path / "wrong.py").write_text(wrong)
    done = subprocess.run([PROGRAM, "check", str(tmp_path / "wrong.py"), "--kernel", "whole_graph", "--search", "0.01", "--audit", "0", "--json"], capture_output=True, text=True, timeout=300)
    assert done.returncode in (1, 2, 3)


def test_two_layers_in_parts(tmp_path):
    """The scale of what an earlier product has left is of the numbers that lie in memory, whatever rounding they have: it cancels."""
    made = graph([leaf("x", [70, 96])], [node("h", "matmul", ["x", "a"], [70, 80]), node("r", "relu", ["h"], [70, 80]), node("y", "matmul", ["r", "b"], [70, 72])], "y")
    made["parameters"] = [leaf("a", [96, 80]), leaf("b", [80, 72])]
    text, _, report = generated(made, tmp_path, "f32")
    assert families(report).count("split") == 4
    floors = text.replace("A_down[r] = exp2(top[r] - 14)", "A_down[r] = exp2(top[r] - 13)")
    assert floors != text
    (tmp_path / "wrong.py").write_text(floors)
    done = subprocess.run([PROGRAM, "check", str(tmp_path / "wrong.py"), "--search", "0.01", "--audit", "0", "--json"], capture_output=True, text=True, timeout=300)
    assert done.returncode in (1, 3) and json.loads(done.stdout)


MASKED_BY_DATA = """import tilewright as tw
from tilewright import f32


@tw.kernel(target="sm_90a", threads=128, computes="Y[i] = sum(j in 0:128, exp(where(M[i, j], X[i, j], -inf)))")
def k(X: tw.Tensor(f32, 64, 128), M: tw.Tensor(tw.bool, 64, 128), Y: tw.Tensor(f32, 64)):
    i = tw.grid(64)
    s = tw.where(tw.load(M[i, 0:128]), tw.load(X[i, 0:128]), float("-inf"))
    top = %s
    tw.store(Y[i], tw.sum(tw.exp(s - top), axis=0) * tw.exp(top))
"""


@pytest.mark.parametrize("top, proved", [("tw.maximum(tw.max(s, axis=0), -1.0e30)", True), ("tw.max(s, axis=0)", False)])
def test_a_row_that_data_may_mask_whole(top, proved, tmp_path):
    """The maximum of a row with no element left is minus infinity, and relative to that nothing has a value; the equation says 0."""
    (tmp_path / "k.py").write_text(MASKED_BY_DATA % top)
    done = subprocess.run([PROGRAM, "check", str(tmp_path / "k.py"), "--search", "0.01", "--audit", "0"], capture_output=True, text=True, timeout=300)
    assert (done.returncode == 0) == proved, done.stdout


def test_norm_before_an_attention(tmp_path):
    """A variance is not negative: what is divided by its root is a number everywhere, and later launches speak of it by its name."""
    made = block("f32", False)
    rows = made["inputs"][0]["shape"]
    made["nodes"] = [node("n", "layer_norm", ["x"], rows, dims=1, eps=1e-5)] + [dict(n, inputs=["n" if i == "x" else i for i in n["inputs"]]) for n in made["nodes"]]
    _, _, report = one_graph.generated(made, tmp_path, 1e-5, "--large", "1")
    assert report["program"]["verdict"] == "proved", report["program"]
