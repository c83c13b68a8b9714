"""Norms, softmax and places of extremes over lines that no block holds: one pass gives two reductions, a second one what depends on them."""
import json
import os
import random
import subprocess

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM", "tilewright")


def generated(folder, shape, op, attributes, before=(), dtype="f32", out=None, tolerance=2e-6):
    nodes, last = [], "x"
    for i, (fn, number) in enumerate(before):
        nodes.append({"name": f"b{i}", "op": fn, "inputs": [last, number], "shape": list(shape), "dtype": "f32"})
        last = f"b{i}"
    nodes.append({"name": "y", "op": op, "inputs": [last], "attributes": attributes, "shape": list(out or shape), "dtype": dtype})
    made = {"format": "tilewright-graph", "version": 1, "name": "lines", "inputs": [{"name": "x", "shape": list(shape), "dtype": "f32"}], "parameters": [], "nodes": nodes, "outputs": ["y"]}
    path = folder / "graph.json"
    path.write_text(json.dumps(made))
    done = subprocess.run([PROGRAM, "generate", str(path), "--json", "--emulate", "-o", str(folder / "out")], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr + done.stdout[-2000:]
    report = json.loads(done.stdout)
    assert report["proved"], [(k["kernel"], k.get("why", "")[:300]) for k in report["kernels"] if k["verdict"] != "proved"]
    assert report["emulated"]["worst"] < tolerance, report["emulated"]
    return (folder / "out" / "kernels.py").read_text()


def passes(text):
    """How often the kernels go over all of x: its loads, but for that of a line's first part."""
    return text.count("tw.load(T_x[") - ("near" in text)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("op", ["softmax", "log_softmax", "layer_norm", "instance_norm", "group_norm"])
def test_rows(op, seed, tmp_path):
    random.seed(f"{op}{seed}")
    length = random.choice([8193, 9000, 12288, 16384, 20011, 30000]) if seed else 16384
    if op.endswith("softmax"):
        text = generated(tmp_path, (2, length), op, {"dim": 1})
    elif op == "layer_norm":
        text = generated(tmp_path, (2, length), op, {"dims": 1, "eps": 1e-5})
    else:  # few lines of more than 32768 elements are added up by many blocks, in three kernels
        text = generated(tmp_path, (2, 4, min(length, 16000)), op, {"eps": 1e-5} | ({"groups": 2} if op == "group_norm" else {}))
    assert text.count("@tw.kernel") == 1 and passes(text) == 2, text


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
