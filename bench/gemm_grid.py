"""GEMM over the whole grid of sizes: shapes drawn by a seed, each by the kernel and constants that tilewright.ops would choose, against autotuned cuBLASLt.

    python3 bench/gemm_grid.py SUITE.json [--shapes 100] [--seed 2026] [--most 2^41]      writes a suite: tilewright bench --suite SUITE.json --json OUT.json

The choice is the dispatch table's, by tuned data and its predictions: neither a GPU nor torch is needed to make it. --most bounds multiply-adds of a shape, for short runs.
"""
import argparse
import ctypes
import json
import os
import random
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "python"))
SIZES = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 12288, 16384)


_modules = {}


def _choice(file, kernel, m, n, k):
    """(predicted microseconds, constants) of a candidate for these sizes, or None."""
    from tilewright._library import Tensor, check, library

    if file not in _modules:
        _modules[file] = ctypes.c_void_p()
        check(library().tw_module_load(json.dumps({"path": os.path.join(ROOT, "kernels", file)}).encode(), ctypes.byref(_modules[file])))
    tensors, text = (Tensor * 3)(), ctypes.c_char_p()
    for t, place, dims in zip(tensors, (1 << 44, 2 << 44, 3 << 44), ((m, k), (n, k), (m, n))):  # never touched: only their shapes count
        t.address, t.dtype, t.rank = place, b"bf16", 2
        t.dims[:2], t.strides[:2] = dims, (dims[1], 1)
    if library().tw_module_choose(_modules[file], kernel.encode(), tensors, 3, (ctypes.c_double * 1)(), 0, ctypes.byref(text)):
        return None
    found = json.loads(text.value.decode())
    return found["predicted_us"], {name: value for name, value in found["constants"].items() if name != "T"}  # bf16 is the first variant


def chosen(m, n, k):
    """file, kernel, constants of the dispatch for these sizes."""
    from tilewright import _dispatch

    fitting = [(file, kernel, c) for file, kernel in _dispatch.table()["matmul_tn"] for c in [_choice(file, kernel, m, n, k)] if c]
    file, kernel, (_, constants) = fitting[_dispatch.preferred([c[0] for _, _, c in fitting])]
    return "kernels/" + file, kernel, constants


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite")
    parser.add_argument("--shapes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--most", type=int, default=1 << 42)
    arguments = parser.parse_args()
    generator = random.Random(arguments.seed)
    shapes = []
    while len(shapes) < arguments.shapes:
        shape = tuple(generator.choice(SIZES) for _ in range(3))
        if shape not in shapes and shape[0] * shape[1] * shape[2] <= arguments.most:
            shapes.append(shape)
    cases = []
    for m, n, k in shapes:
        file, kernel, constants = chosen(m, n, k)
        cases.append({"case": f"TN {m}x{n}x{k}", "file": file, "kernel": kernel, "sizes": {"M": m, "N": n, "K": k}, "constants": constants, "peers": ["cublaslt"]})
    with open(arguments.suite, "w", encoding="utf-8") as out:
        json.dump({"suite": "gemm_grid", "cases": cases}, out, indent=1)
    by_kernel = {}
    for case in cases:
        by_kernel[case["kernel"]] = by_kernel.get(case["kernel"], 0) + 1
    print(f"{len(cases)} shapes: " + ", ".join(f"{count} {kernel}" for kernel, count in sorted(by_kernel.items())))


if __name__ == "__main__":
    main()
