"""Norms, softmax and places of extremes over lines that the registers of no block hold: rows stay in shared memory, of a block or of a cluster; of longer lines one pass gives
two reductions, a second one what depends on them."""
import json
import os
import random
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import one_graph  # noqa: E402
from one_graph import PROGRAM, graph, leaf, node  # noqa: E402


def generated(folder, shape, op, attributes, before=(), dtype="f32", out=None, tolerance=2e-6):
    nodes, last = [], "x"
    for i, (fn, number) in enumerate(before):
        nodes.append(node(f"b{i}", fn, [last, number], shape))
        last = f"b{i}"
    nodes.append({**node("y", op, [last], out or shape, **attributes), "dtype": dtype})
    return one_graph.generated(graph([leaf("x", shape)], nodes), folder, tolerance)[0]


def passes(text):
    """How often the kernels go over all of x: its loads and copies, but for that of a line's first part."""
    return text.count("tw.load(T_x[") + text.count("tw.load(X[") + text.count("tw.cp_async(row[c], T_x[") - ("near" in text)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("op", ["softmax", "log_softmax", "layer_norm", "instance_norm", "group_norm"])
def test_rows(op, seed, tmp_path):
    random.seed(f"{op}{seed}")
    length = random.choice([8193, 9000, 12288, 16384, 20011, 30000]) if seed else 16384
    if op.endswith("softmax"):
        text = generated(tmp_path, (2, length), op, {"dim": 1})
    elif op == "layer_norm":
        text = generated(tmp_path, (2, length), op, {"dims": 1, "eps": 1e-5})
    else:
        text = generated(tmp_path, (2, 4, length), op, {"eps": 1e-5} | ({"groups": 2} if op == "group_norm" else {}))
    assert text.count("@tw.kernel") == 1 and passes(text) == 1, text


@pytest.mark.parametrize("op, length, cluster", [("softmax", 16383, 1), ("log_softmax", 17000, 2), ("layer_norm", 65535, 4), ("softmax", 140000, 7), ("layer_norm", 262144, 8), ("softmax", 393216, 8), ("rms_norm", 40000, 3)])
def test_rows_of_a_cluster(op, length, cluster, tmp_path):
    """A row in the shared memory of up to eight blocks: read once, whatever its length and alignment."""
    rows = 2 if length < 100000 else 1
    attributes = {"dim": 1} if op.endswith("softmax") else {"dims": 1, "eps": 1e-5}
    text = generated(tmp_path, (rows, length), op, attributes, before=[("mul", 3.0)] if length == 17000 else ())
    assert passes(text) == 1 and ("tw.cluster_sync()" in text) == (cluster > 1), text
    assert cluster == 1 or f"cluster=({cluster}, 1, 1)" in text


def test_rows_of_a_cluster_under_a_weight(tmp_path):
    """What a column has of its own is read beside the row; several reductions of one row meet in one place each."""
    shape = [3, 20000]
    x = {"name": "x", "shape": shape, "dtype": "f32"}
    w = {"name": "w", "shape": [20000], "dtype": "f32"}
    made = {"format": "tilewright-graph", "version": 1, "name": "lines", "inputs": [x], "parameters": [w], "outputs": ["y"], "nodes": [
        {"name": "a", "op": "amax", "inputs": ["x"], "attributes": {"dims": [1], "keepdim": True}, "shape": [3, 1], "dtype": "f32"},
        {"name": "b", "op": "amin", "inputs": ["x"], "attributes": {"dims": [1], "keepdim": True}, "shape": [3, 1], "dtype": "f32"},
        {"name": "d", "op": "sub", "inputs": ["a", "b"], "shape": [3, 1], "dtype": "f32"},
        {"name": "e", "op": "sub", "inputs": ["x", "b"], "shape": shape, "dtype": "f32"},
        {"name": "f", "op": "div", "inputs": ["e", "d"], "shape": shape, "dtype": "f32"},
        {"name": "y", "op": "mul", "inputs": ["f", "w"], "shape": shape, "dtype": "f32"}]}
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(made))
    done = subprocess.run([PROGRAM, "generate", str(path), "--json", "--emulate", "-o", str(tmp_path / "out")], capture_output=True, text=True, timeout=300)
    report = json.loads(done.stdout)
    assert report["proved"] and report["emulated"]["worst"] < 2e-6, report
    text = (tmp_path / "out" / "kernels.py").read_text()
    assert passes(text) == 1 and "parts = tw.shared(f32, (2,))" in text


@pytest.mark.parametrize("op, shape", [("batch_norm", (6, 3, 8192)), ("batch_norm", (40, 2, 1000)), ("instance_norm", (1, 2, 450000)), ("layer_norm", (1, 500000))])
def test_lines_that_many_blocks_add_up(op, shape, tmp_path):
    """Sum and squares from one read, about a value near the mean that a small kernel takes before: two reads in all."""
    attributes = {"eps": 1e-5} | ({"groups": 2} if op == "group_norm" else {"dims": 1} if op == "layer_norm" else {})
    text = generated(tmp_path, shape, op, attributes)
    assert text.count("@tw.kernel") == 3 and passes(text) == 2 and text.count("tw.atomic_add(") == 2, text


def test_a_mean_far_from_zero_costs_no_digits_of_many_blocks(tmp_path):
    """The mean is 20000 times the deviation; squares about zero would lose all digits of the variance."""
    x = {"name": "x", "shape": [4, 3, 8192], "dtype": "f32"}
    nodes = [{"name": "far", "op": "add", "inputs": ["x", 6000.0], "shape": [4, 3, 8192], "dtype": "f32"}, {"name": "held", "op": "cumsum", "inputs": ["far"], "attributes": {"dim": 0}, "shape": [4, 3, 8192], "dtype": "f32"},
             {"name": "y", "op": "batch_norm", "inputs": ["held"], "attributes": {"eps": 1e-5}, "shape": [4, 3, 8192], "dtype": "f32"}]
    made = {"format": "tilewright-graph", "version": 1, "name": "lines", "inputs": [x], "parameters": [], "nodes": nodes, "outputs": ["y"]}
    (tmp_path / "graph.json").write_text(json.dumps(made))
    done = subprocess.run([PROGRAM, "generate", str(tmp_path / "graph.json"), "--json", "--emulate", "-o", str(tmp_path / "out")], capture_output=True, text=True, timeout=300)
    report = json.loads(done.stdout)
    assert report["proved"] and report["emulated"]["worst"] < 1e-5, report["emulated"]
    assert "A_near[" in (tmp_path / "out" / "kernels.py").read_text()


@pytest.mark.parametrize("offset", [1000.0, -30000.0])
def test_a_mean_far_from_zero_costs_no_digits(offset, tmp_path):
    """Squares about zero would lose all of them: 1000^2 is 1e7 times the variance of what lies between 0 and 1."""
    generated(tmp_path, (2, 20000), "layer_norm", {"dims": 1, "eps": 1e-5}, before=[("add", offset)], tolerance=abs(offset) * 2.5e-6)


@pytest.mark.parametrize("shape", [(6, 300, 96), (3, 70, 33), (2, 128, 640)])
@pytest.mark.parametrize("op", ["softmax", "batch_norm"])
def test_columns(op, shape, tmp_path):
    generated(tmp_path, shape, op, {"dim": 1} if op == "softmax" else {"eps": 1e-5})


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@pytest.mark.parametrize("columns", [7, 32, 105, 128, 211, 640])
def test_places_over_columns(op, columns, tmp_path):
    text = generated(tmp_path, (3, 50, columns), op, {"dim": 1, "keepdim": False}, dtype="i64", out=(3, columns), tolerance=0.5)
    assert passes(text) == 1, text


@pytest.mark.parametrize("m, n, k", [(128, 128, 4096), (256, 64, 8192), (144, 200, 4096), (131, 151, 512), (64, 64, 1000), (1, 200, 8192)])
def test_products_of_long_sums(m, n, k, tmp_path):
    """Small products by three products of tf32 parts. Of full tiles, parts of the sum are added outside the matrix unit, which does not round to nearest; of others they are not yet."""
    made = {"format": "tilewright-graph", "version": 1, "name": "product", "inputs": [{"name": "x", "shape": [m, k], "dtype": "f32"}], "parameters": [{"name": "w", "shape": [k, n], "dtype": "f32"}],
            "nodes": [{"name": "y", "op": "matmul", "inputs": ["x", "w"], "shape": [m, n], "dtype": "f32"}], "outputs": ["y"]}
    (tmp_path / "graph.json").write_text(json.dumps(made))
    done = subprocess.run([PROGRAM, "generate", str(tmp_path / "graph.json"), "--json", "--emulate"], capture_output=True, text=True, timeout=300)
    report = json.loads(done.stdout)
    assert report["proved"] and report["emulated"]["worst"] < (2e-5 if m % 64 == 0 else 2e-4), report
