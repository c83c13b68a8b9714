"""GEMM over the whole grid of sizes: shapes drawn by a seed, each by the kernel and constants that tilewright.ops would choose, against autotuned cuBLASLt.

    python3 bench/gemm_grid.py SUITE.json [--shapes 100] [--seed 2026] [--most 2^41]      writes a suite: tilewright bench --suite SUITE.json --json OUT.json

The choice is the dispatch table's, by tuned data and its predictions: no GPU is needed to make it, and nothing of it is made for these shapes. --most bounds multiply-adds of a shape, for short runs.
"""
import argparse
import json
import os
import random
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "python"))
SIZES = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 12288, 16384)


def chosen(m, n, k):
    """file, kernel, constants of the dispatch for these sizes."""
    import torch

    from tilewright import _dispatch

    tensors = [torch.empty(*shape, dtype=torch.bfloat16) for shape in ((m, k), (n, k), (m, n))]  # never touched: only their shapes count
    plan = _dispatch._choose("matmul_tn", tensors, {}, _dispatch.HOST)
    constants = {name: value for name, value in plan.choice["constants"].items() if name != "T"}  # bf16 is the first variant
    return "kernels/" + os.path.basename(plan.kernel._module.file), plan.kernel.name, constants


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
