# expect: TW0007 at 2:8
name = "gemm
x = 1
