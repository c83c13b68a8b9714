name = "gemm
x = 1
