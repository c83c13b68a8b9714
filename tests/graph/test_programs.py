"""Whole programs of generated kernels: proved against what the graph computes, and not proved where they are wrong."""
import json
import os
import re
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import families  # noqa: E402
import whole  # noqa: E402

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM", "tilewright")
# A seed of each family whose whole program is proved.
SEEDS = {"pointwise": 0, "reductions": 0, "softmax": 0, "norms": 0, "scans": 0, "losses": 0, "places": 0, "pooling": 0, "products": 0, "convolutions": 0,
         "transposed": 0, "attention": 0, "views": 0, "networks": 0}


def generated(graph, folder):
    path = folder / "graph.json"
    path.write_text(json.dumps(graph))
    done = subprocess.run([PROGRAM, "generate", str(path), "--json", "-o", str(folder / "out")], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), (folder / "out" / "kernels.py").read_text()


@pytest.mark.parametrize("name", sorted(whole.GRAPHS))
def test_proved(name, tmp_path):
    report, text = generated(whole.make(name), tmp_path)
    assert report["proved"] and report["program"]["verdict"] == "proved", report["program"]
    assert report["composition"] == "proved"
    assert "@tw.program(computes=" in text


@pytest.mark.parametrize("family", sorted(SEEDS))
def test_family(family, tmp_path):
    report, _ = generated(families.make(family, SEEDS[family]), tmp_path)
    assert report["program"]["verdict"] == "proved", report["program"]


def verdict(text, folder):
    """Of the program alone, as `check` has it; the search finds no counterexample in no time."""
    path = folder / "wrong.py"
    path.write_text(text)
    done = subprocess.run([PROGRAM, "check", str(path), "--kernel", "whole_graph", "--search", "0.01", "--audit", "0", "--json"], capture_output=True, text=True, timeout=300)
    return done.returncode


def launch_with(text, change):
    """The last launch of the program with its arguments changed."""
    lines = text.rstrip("\n").split("\n")
    last = max(i for i, line in enumerate(lines) if re.match(r"    k\d", line))
    name, arguments = re.match(r"    (\w+)\((.*)\)", lines[last]).groups()
    lines[last] = f"    {name}({', '.join(change(arguments.split(', ')))})"
    return "\n".join(lines) + "\n"


def swapped(a):
    return [a[0], a[2], a[1]] + a[3:]


# Each is a program that compiles: two buffers of one shape swapped, and what the graph says changed in one place.
WRONG = {
    "weight and bias of a norm": ("batch_norm_relu", lambda t: launch_with(t, swapped)),
    "no bias": ("linear_layer_norm", lambda t: re.sub(r"(let n_n0\[.*) \+ a_p1\[i1\]", r"\1", t)),
    "another bias": ("linear_layer_norm", lambda t: re.sub(r"(let n_n0\[.*) \+ a_p1\[i1\]", r"\1 + a_p2[i1]", t)),
    "another axis": ("channel_softmax", lambda t: re.sub(r"sum\(r in 0:8, exp\(n_n0\[i0, r, i2, i3\]", "sum(r in 0:6, exp(n_n0[i0, i1, r, i3]", t)),
    "rows for columns": ("product_max_sum", lambda t: re.sub(r"(let n_n1\[.*) = n_n0\[.*", r"\1 = n_n0[(i0 * 24 + i1 * 2 + i2) % 16, (i0 * 24 + i1 * 2 + i2) // 16]", t)),
    "scale and shift through each other's view": ("group_norm_max", lambda t: t.replace("tw.view(a_p2,", "tw.view(a_pX,").replace("tw.view(a_p3,", "tw.view(a_p2,").replace("a_pX", "a_p3")),
    "a smaller window": ("conv_max_pool", lambda t: re.sub(r", n_n0\[i0, i1, i2 \* 2 \+ 1, i3 \* 2 \+ 1\]\)", ", n_n0[i0, i1, i2 * 2, i3 * 2])", t)),
    "no epsilon": ("instance_norm", lambda t: t.replace(" + 1e-05)", ")") if "let n_n1" in t else t),
    "a launch left out": ("two_layers", lambda t: "\n".join(line for line in t.split("\n") if not line.startswith("    k0_")) + "\n"),
}


@pytest.mark.parametrize("what", sorted(WRONG))
def test_wrong_is_not_proved(what, tmp_path):
    name, change = WRONG[what]
    _, text = generated(whole.make(name), tmp_path)
    at = text.index("@tw.program")
    wrong = text[:at] + change(text[at:])
    assert wrong != text, "nothing was changed"
    assert verdict(text, tmp_path) == 0
    assert verdict(wrong, tmp_path) in (1, 2, 3)


def outputs(names):
    def node(name, op, source, shape):
        return {"name": name, "op": op, "inputs": [source], "attributes": {}, "shape": shape, "dtype": "f32"}
    nodes = [node("a", "exp", "x", [4, 6]), node("b", "reshape", "a", [24]), node("c", "copy", "b", [24]), node("d", "reshape", "x", [24])]
    return {"format": "tilewright-graph", "version": 1, "name": "outputs", "inputs": [{"name": "x", "shape": [4, 6], "dtype": "f32"}], "parameters": [], "nodes": nodes, "outputs": names}


@pytest.mark.parametrize("names", [["a", "a"], ["a", "b", "c", "c"], ["x", "a", "d", "a"]])
def test_outputs_that_are_inputs_or_the_same_tensor(names, tmp_path):
    """The same tensor is written once; an input, by no launch."""
    report, _ = generated(outputs(names), tmp_path)
    assert report["program"]["verdict"] == "proved", report["program"]
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert len(plan["outputs"]) == len(names)


def test_nothing_to_launch(tmp_path):
    report, _ = generated(outputs(["x", "x"]), tmp_path)
    assert report["proved"] and "nothing is launched" in report["program"]["why"]
