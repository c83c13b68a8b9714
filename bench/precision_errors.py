"""Errors of GEMMs against fp64, ours beside the libraries': root mean square of the error over that of the result, and the largest error over it.

    python3 bench/precision_errors.py [OUT.json]
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "python"))

import torch  # noqa: E402

import tilewright  # noqa: E402


def matrices(kind, m, n, k):
    generator = torch.Generator(device="cuda").manual_seed(7)
    a = torch.randn(m, k, device="cuda", generator=generator)
    b = torch.randn(n, k, device="cuda", generator=generator)
    if kind == "positive":
        a, b = a.abs(), b.abs()
    elif kind == "wide":  # elements of a row differ by up to 2^20
        a *= torch.exp2(torch.randint(-10, 11, a.shape, device="cuda", generator=generator).float())
        b *= torch.exp2(torch.randint(-10, 11, b.shape, device="cuda", generator=generator).float())
    elif kind == "rows":  # rows differ by up to 2^60
        a *= torch.exp2(torch.randint(-30, 31, (m, 1), device="cuda", generator=generator).float())
        b *= torch.exp2(torch.randint(-30, 31, (n, 1), device="cuda", generator=generator).float())
    return a, b


def errors(got, exact, scale):
    difference = (got.double() - exact) / scale
    return {"rms": difference.square().mean().sqrt().item(), "worst": difference.abs().max().item()}


def main():
    kernel = tilewright.load(os.path.join(os.path.dirname(HERE), "kernels", "gemm_f32_sm90.py")).gemm_f32
    rows = []
    for kind in ("normal", "positive", "wide", "rows"):
        for m, n, k in ((1024, 1024, 1024), (2048, 2048, 8192)):
            a, b = matrices(kind, m, n, k)
            exact = a.double() @ b.double().t()
            scale = (a.double().square().sum(1, keepdim=True) * b.double().square().sum(1)[None, :]).sqrt()  # |row of A| |row of B|
            c = torch.empty(m, n, device="cuda")
            kernel(A=a, B=b, C=c)
            row = {"data": kind, "m": m, "n": n, "k": k, "ours": errors(c, exact, scale)}
            for name, allowed in (("sgemm", False), ("tf32", True)):
                torch.backends.cuda.matmul.allow_tf32 = allowed
                row[name] = errors(a @ b.t(), exact, scale)
            rows.append(row)
            print(f"{kind:9} {m}x{n}x{k}: " + ", ".join(f"{name} rms {row[name]['rms']:.2e} worst {row[name]['worst']:.2e}" for name in ("ours", "sgemm", "tf32")))
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w", encoding="utf-8") as out:
            json.dump({"schema": "tilewright precision errors 1", "gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": rows}, out, indent=1)


if __name__ == "__main__":
    main()
