name = Rf"gemm_{BM}"
