#!/usr/bin/env python3
"""Shapes that are no task's, as tasks: whether what was made for a task holds for its family.

    python3 bench/kernelbench/shapes.py OUT          # OUT/tasks/level9/N_name.py and OUT/graphs/L9-N/graph.json; no GPU, no framework
    python3 bench/kernelbench/variants.py OUT/tasks GENERATED --exact --out shapes.json

Ten strided transposed convolutions (remainders of unequal extents, remainders without taps, one to three dimensions), ten convolutions with rows of at most 32 places,
ten folds over a dimension before rows that are no whole vectors.
"""
import json
import pathlib
import sys

# batch, channels, results, extents, kernel, and what differs from stride 1, padding 0, dilation 1
TRANSPOSED = [
    (8, 64, 96, [50000], 4, dict(stride=3, padding=1)),
    (16, 32, 64, [65536], 5, dict(stride=2, padding=2, output_padding=1)),
    (8, 48, 64, [40000], 3, dict(stride=4, dilation=4)),
    (8, 64, 64, [96, 100], 3, dict(stride=2, padding=1)),
    (8, 32, 48, [120, 130], 4, dict(stride=2, padding=1)),
    (4, 64, 128, [64, 90], 5, dict(stride=3, padding=2)),
    (8, 32, 32, [80, 77], 2, dict(stride=2)),
    (8, 32, 64, [60, 70], 3, dict(stride=4, dilation=2)),
    (2, 32, 32, [16, 24, 40], 3, dict(stride=2, padding=1)),
    (4, 16, 32, [12, 20, 50], 2, dict(stride=2)),
]
SHORT = [
    (64, 64, 128, [32, 28], 3, dict(padding=1)),
    (128, 32, 64, [14, 14], 3, dict(padding=1)),
    (64, 128, 128, [16, 16], 3, dict(padding=1)),
    (128, 64, 64, [20, 31], 5, dict(padding=2)),
    (8, 32, 64, [16, 24, 24], 3, dict(padding=1)),
    (16, 16, 32, [10, 20, 12], 3, dict()),
    (64, 64, 64, [16, 16], 4, dict(stride=2, padding=1, transposed=True)),
    (64, 32, 64, [28, 28], 3, dict(stride=2, padding=1, output_padding=1, transposed=True)),
    (16, 32, 32, [8, 16, 16], 3, dict(stride=2, padding=1, output_padding=1, transposed=True)),
    (128, 96, 96, [27, 27], 3, dict(padding=1)),
]
# operator, extents, the dimension
FOLDS = [
    ("sum", [64, 2048, 2047], 1), ("mean", [128, 1024, 3001], 1), ("amax", [32, 4096, 4090], 1), ("amin", [16, 8192, 1023], 1), ("sum", [8192, 10001], 0),
    ("mean", [256, 512, 2049], 1), ("sum", [16, 1024, 33, 129], 1), ("amax", [8, 16, 1024, 1537], 2), ("sum", [100, 1000, 1501], 1), ("mean", [65536, 515], 0),
]

CONVOLUTION = """import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.{module}({channels}, {results}, {kernel}{more})

    def forward(self, x):
        return self.conv(x)


def get_inputs():
    return [torch.rand({shape})]


def get_init_inputs():
    return []
"""

FOLD = """import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.{op}(x, dim={dim})


def get_inputs():
    return [torch.rand({shape})]


def get_init_inputs():
    return []
"""


def leaf(name, shape):
    return {"name": name, "shape": shape, "dtype": "f32"}


def graph(name, shape, parameters, node):
    return {"format": "tilewright-graph", "version": 1, "name": name, "inputs": [leaf("x0", shape)], "parameters": parameters, "nodes": [node], "outputs": [node["name"]]}


def convolution(batch, channels, results, extents, kernel, about):
    about = dict(about)
    transposed, rank = about.pop("transposed", False), len(extents)
    stride, padding, dilation, more = (about.get(k, d) for k, d in (("stride", 1), ("padding", 0), ("dilation", 1), ("output_padding", 0)))
    if transposed:
        out = [(n - 1) * stride - 2 * padding + dilation * (kernel - 1) + more + 1 for n in extents]
    else:
        out = [(n + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1 for n in extents]
    attributes = {"stride": [stride] * rank, "padding": [padding] * rank, "dilation": [dilation] * rank, "groups": 1}
    if transposed:
        attributes |= {"tf32": "even", "transposed": True, "output_padding": [more] * rank}
    elif rank == 3:
        attributes["tf32"] = channels % 4 == 0
    module = f"Conv{'Transpose' if transposed else ''}{rank}d"
    text = CONVOLUTION.format(module=module, channels=channels, results=results, kernel=kernel, more="".join(f", {k}={v}" for k, v in about.items()), shape=", ".join(map(str, [batch, channels, *extents])))
    weight = [channels, results] if transposed else [results, channels]
    node = {"name": "convolution", "op": "conv", "inputs": ["x0", "p_conv_weight", "p_conv_bias"], "shape": [batch, results, *out], "dtype": "f32", "attributes": attributes}
    name = f"{module}_{channels}_{results}_{'x'.join(map(str, extents))}_k{kernel}" + "".join(f"_{k[0]}{v}" for k, v in about.items())
    return name, text, graph(name, [batch, channels, *extents], [leaf("p_conv_weight", weight + [kernel] * rank), leaf("p_conv_bias", [results])], node)


def fold(op, shape, dim):
    name = f"{op}_{'x'.join(map(str, shape))}_over_{dim}"
    node = {"name": "folded", "op": op, "inputs": ["x0"], "shape": shape[:dim] + shape[dim + 1:], "dtype": "f32", "attributes": {"keepdim": False, "dims": [dim]}}
    return name, FOLD.format(op=op, dim=dim, shape=", ".join(map(str, shape))), graph(name, shape, [], node)


def main():
    out = pathlib.Path(sys.argv[1])
    made = [convolution(*c[:-1], c[-1] | {"transposed": True}) for c in TRANSPOSED] + [convolution(*c) for c in SHORT] + [fold(*f) for f in FOLDS]
    (out / "tasks/level9").mkdir(parents=True, exist_ok=True)
    for i, (name, text, graph_of) in enumerate(made, 1):
        (out / f"tasks/level9/{i}_{name}.py").write_text(text)
        folder = out / f"graphs/L9-{i}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "graph.json").write_text(json.dumps(graph_of) + "\n")
    print(f"{len(made)} shapes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
