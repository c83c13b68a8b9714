"""GEMM over the whole grid of sizes: shapes drawn by a seed, each by the kernel that a rule chooses, against autotuned cuBLASLt.

    python3 bench/gemm_grid.py SUITE.json [--shapes 100] [--seed 2026]      writes a suite: tilewright bench --suite SUITE.json --json OUT.json

The rule looks at sizes alone, so it is one dispatch for all shapes and not a table of these.
"""
import argparse
import json
import random

SIZES = (64, 128, 256, 512, 1024, 2048, 4096, 8192, 12288, 16384)
SMS = 132


def waves(m, n, bm, bn):
    return -(-(-(-m // bm) * -(-n // bn)) // SMS)


def chosen(m, n, k):
    """file, kernel, constants. Few tokens: the weights are streamed. Few tiles and a long k: k is split. Else the tile width whose waves cost least, where a step of 256 columns costs twice one
    of 128 and what a tile costs beside its steps is about that of one more block of k."""
    if m <= 128 and k % 8 == 0 and n >= 2048:
        tokens = next(t for t in (8, 16, 32, 64, 128) if t >= m)
        return "kernels/gemm_skinny_sm90.py", "gemm_skinny", {"TOKENS": tokens, "BK": 128 if tokens < 128 else 64, "STAGES": {8: 11, 16: 10, 32: 8, 64: 6, 128: 8}[tokens]}
    tiles = -(-m // 128) * -(-n // 128)
    if tiles * 8 <= SMS * 2 and k >= 4096:
        return "kernels/gemm_split_sm90.py", "gemm_split", {}
    if tiles <= SMS // 2 and k <= 4096:
        return "kernels/gemm_small_sm90.py", "gemm_small", {}
    narrow, wide = waves(m, n, 128, 128) * (k + 64), waves(m, n, 128, 256) * (2 * k + 64) * 0.97
    if narrow < wide:
        file, kernel = ("gemm_deferred_sm90.py", "gemm_deferred_tn") if k > 128 else ("gemm_sm90.py", "gemm")
        constants = {"T": "bf16", "BN": 128, "STAGES": 6}
    else:
        file, kernel = ("gemm_deferred_sm90.py", "gemm_deferred_tn") if k > 256 else ("gemm_sm90.py", "gemm")
        constants = {"T": "bf16", "BN": 256, "STAGES": 4}
    if kernel == "gemm_deferred_tn" and (tiles <= SMS // 2 or tiles * k <= 4096 * 1024):
        constants["DEPENDENT"] = 1
    return "kernels/" + file, kernel, constants


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("suite")
    parser.add_argument("--shapes", type=int, default=100)
    parser.add_argument("--seed", type=int, default=2026)
    arguments = parser.parse_args()
    generator = random.Random(arguments.seed)
    shapes = []
    while len(shapes) < arguments.shapes:
        shape = tuple(generator.choice(SIZES) for _ in range(3))
        if shape not in shapes:
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
