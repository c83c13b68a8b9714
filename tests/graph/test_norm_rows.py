"""Norms over several rows for each mean, and shapes without common runs: each once was not proved, or refused."""
import json
import pathlib
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from one_graph import PROGRAM, generated, graph, leaf, node  # noqa: E402


def proved(made, folder):
    path = folder / "graph.json"
    path.write_text(json.dumps(made))
    done = subprocess.run([PROGRAM, "generate", str(path), "--json"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["proved"], [(k["kernel"], k.get("why", "")[:300]) for k in report["kernels"] if k["verdict"] != "proved"]
    assert report["composition"] == "proved", report["program"]


# Rows of 2049 to 8192 elements that are no multiple of 2048: the last part of a row is not full.
@pytest.mark.parametrize("shape", [(10, 24, 56, 56), (10, 512, 46, 46), (2, 64, 56, 56), (10, 1024, 66, 66)])
def test_batch_norm_of_ragged_rows(shape, tmp_path):
    channels = [leaf("w", [shape[1]]), leaf("b", [shape[1]])]
    proved(graph([leaf("x", shape)], [node("y", "batch_norm", ["x", "w", "b"], shape, eps=1e-5), node("z", "relu", ["y"], shape)], parameters=channels), tmp_path)


@pytest.mark.parametrize("order, shape, to", [([1, 0], (4, 6), (8, 3)), ([0, 1, 2, 3, 5, 4], (2, 3, 2, 2, 4, 2), (2, 4, 24)), ([0, 2, 1], (2, 5, 6), (4, 15))])
@pytest.mark.parametrize("then", ["relu", "softmax", None])
def test_reshape_without_common_runs(order, shape, to, then, tmp_path):
    turned = [shape[d] for d in order]
    nodes = [node("a", "permute", ["x"], turned, order=order), node("b", "reshape", ["a"], to)]
    if then:
        nodes.append(node("c", then, ["b"], to, **({"dim": -1} if then == "softmax" else {})))
    generated(graph([leaf("x", shape)], nodes), tmp_path, 1e-6)


@pytest.mark.parametrize("batch", [1, 2])
def test_squeezed_channels(batch, tmp_path):
    """A mean over all places, then a convolution of one place: of one image, the folds of both met in one group."""
    nodes = [node("m", "mean", ["x"], [batch, 4, 1, 1], dims=[2, 3], keepdim=True),
             node("c", "conv", ["m", "w"], [batch, 4, 1, 1], stride=[1, 1], padding=[0, 0], dilation=[1, 1], groups=1)]
    generated(graph([leaf("x", [batch, 4, 8, 8])], nodes, parameters=[leaf("w", [4, 4, 1, 1])]), tmp_path, 1e-5)


@pytest.mark.parametrize("op", ["sum", "mean", "amax"])
def test_folds_of_ragged_rows(op, tmp_path):
    """Over the first and the last dimension at once."""
    nodes = [node("h", "mul", ["x", "x"], [4, 300, 3136]), node("y", op, ["h"], [300], dims=[0, 2], keepdim=False)]
    proved(graph([leaf("x", [4, 300, 3136])], nodes), tmp_path)
