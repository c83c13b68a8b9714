# expect: TW0009 at 2:8
name = f"gemm_{BM}"
