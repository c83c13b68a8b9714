"""Every operator family: random attributes and shapes through generation, proof and emulation against fp64."""
import json
import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import families  # noqa: E402

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM", "tilewright")
COUNT = int(os.environ.get("TILEWRIGHT_GRAPHS", "10"))
# Convolutions round operands to tf32 (2^-11 each); sums of such products differ by a few parts in a thousand where they cancel.
# A norm or a softmax after one divides by a spread that may be small.
TOLERANCE = {"convolutions": 8e-3, "transposed": 8e-3, "networks": 5e-2}


@pytest.mark.parametrize("family", sorted(families.FAMILIES))
def test_family(family, tmp_path):
    wrong, unproved = [], []
    for seed in range(COUNT):
        path = tmp_path / f"{seed}.json"
        path.write_text(json.dumps(families.make(family, seed)))
        done = subprocess.run([PROGRAM, "generate", str(path), "--json", "--emulate", "-o", str(tmp_path / str(seed))], capture_output=True, text=True, timeout=300)
        assert done.returncode in (0, 1), f"seed {seed}: {done.stderr}"
        report = json.loads(done.stdout)
        emulated = report["emulated"]
        if "worst" not in emulated or emulated["worst"] > TOLERANCE.get(family, 1e-4):
            wrong.append((seed, emulated))
        if not report["proved"]:
            unproved.append((seed, [k.get("why", "")[:200] for k in report["kernels"] if k["verdict"] != "proved"]))
    assert not wrong, wrong
    assert not unproved, unproved


@pytest.mark.parametrize("text, words", [
    ("", "is no JSON object"), ("[]", "is no JSON object"), ("{}", "format"),
    ('{"format": "tilewright-graph", "version": 1, "inputs": [{"name": "x", "shape": [-1], "dtype": "f32"}], "outputs": ["x"]}', "positive whole number"),
    ('{"format": "tilewright-graph", "version": 1, "inputs": [{"name": "x", "shape": [2], "dtype": "f32"}], "nodes": [{"name": "y", "op": "frobnicate", "inputs": ["x"], "shape": [2], "dtype": "f32"}], "outputs": ["y"]}', "frobnicate"),
    ('{"format": "tilewright-graph", "version": 1, "inputs": [{"name": "x", "shape": [2], "dtype": "f32"}], "nodes": [{"name": "y", "op": "add", "inputs": ["x", "z"], "shape": [2], "dtype": "f32"}], "outputs": ["y"]}', "no earlier name"),
    ('{"format": "tilewright-graph", "version": 1, "inputs": [{"name": "x", "shape": [2], "dtype": "f32"}], "nodes": [{"name": "y", "op": "exp", "inputs": ["x"], "shape": [3], "dtype": "f32"}], "outputs": ["y"]}', "said to have the shape"),
    ('{"format": "tilewright-graph", "version": 1, "inputs": [{"name": "x", "shape": [2, 3], "dtype": "f32"}], "nodes": [{"name": "y", "op": "softmax", "inputs": ["x"], "attributes": {"dim": 7}, "shape": [2, 3], "dtype": "f32"}], "outputs": ["y"]}', "no axis"),
])
def test_refused(text, words, tmp_path):
    path = tmp_path / "graph.json"
    path.write_text(text)
    done = subprocess.run([PROGRAM, "generate", str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert words in done.stderr
