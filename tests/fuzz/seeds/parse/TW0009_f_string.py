name = f"gemm_{BM}"
