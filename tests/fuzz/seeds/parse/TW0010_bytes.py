name = b"gemm"
