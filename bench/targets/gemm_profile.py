#!/usr/bin/env python3
"""Launches the peer and some variants once each between profiler marks, for Nsight Compute:

    ncu --profile-from-start off --clock-control none --metrics ... python3 gemm_profile.py 4096x4096x4096 ...
"""
import sys

import torch

import gemm
from gemm import tw

VARIANTS = [dict(), dict(STORE_ROWS=16, EARLY_A=1), dict(BN=128, STAGES=6, PINGPONG=1)]

for shape in sys.argv[1:]:
    m, n, k = (int(x) for x in shape.split("x"))
    data = gemm.operands(m, n, k, 1)
    lt = tw.cublaslt_gemm(m, n, k, dtype="bf16", layout="TN", tune=True)
    print(shape, lt.algo, flush=True)
    launches = []
    for v in VARIANTS:
        d = gemm.full(v)
        kern = tw.compile(gemm.FAMILY_GEMM.source, entry="gemm", defines=d)
        launches.append(gemm.prepare_gemm(kern, d, *data))
    for f in [lambda: lt.run(*data)] + launches:
        f()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    for f in [lambda: lt.run(*data)] + launches:
        f()
        torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()
