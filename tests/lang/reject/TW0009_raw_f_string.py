# expect: TW0009 at 2:8
name = Rf"gemm_{BM}"
