"""Small graphs for the tests of `generate`: written, proved, and right on the emulator."""
import json
import os
import subprocess

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM", "tilewright")


def leaf(name, shape):
    return {"name": name, "shape": list(shape), "dtype": "f32"}


def node(name, op, inputs, shape, **attributes):
    return {"name": name, "op": op, "inputs": inputs, "attributes": attributes, "shape": list(shape), "dtype": "f32"}


def graph(inputs, nodes, output=None, parameters=()):
    """Its output is the last node, where no other one is named."""
    return {"format": "tilewright-graph", "version": 1, "name": "one", "inputs": inputs, "parameters": list(parameters), "nodes": nodes, "outputs": [output or nodes[-1]["name"]]}


def refused(plan):
    """Arguments that a launch would refuse: where elements lie side by side, a tensor begins at a multiple of 16 bytes."""
    types = {about["name"]: about["dtype"] for about in plan["inputs"] + plan["parameters"]} | {name: about["dtype"] for name, about in plan["buffers"].items()}
    size = {"f64": 8, "i64": 8, "f16": 2, "bf16": 2, "bool": 1}
    return [(launch["kernel"], a["buffer"], a["offset"]) for launch in plan["launches"] for a in launch["arguments"]
            if a["offset"] * size.get(types[a["buffer"]], 4) % 16 and not (a["strides"] and min(a["strides"]) > 1)]


def generated(made, folder, tolerance, *more):
    """The text, the plan and the report; every kernel is proved and can be launched, and the error on the emulator is below the tolerance."""
    path = folder / "graph.json"
    path.write_text(json.dumps(made))
    done = subprocess.run([PROGRAM, "generate", str(path), "--json", "--emulate", "-o", str(folder / "out"), *more], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr + done.stdout[-2000:]
    report = json.loads(done.stdout)
    assert report["proved"], [(k["kernel"], k.get("why", "")[:300]) for k in report["kernels"] if k["verdict"] != "proved"]
    assert report["emulated"]["worst"] < tolerance, report["emulated"]
    plan = json.loads((folder / "out" / "plan.json").read_text())
    assert not refused(plan)
    return (folder / "out" / "kernels.py").read_text(), plan, report
