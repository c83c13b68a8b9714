name = “gemm”
