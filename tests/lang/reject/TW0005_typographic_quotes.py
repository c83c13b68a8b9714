# expect: TW0005 at 2:8, TW0005 at 2:13
name = “gemm”
