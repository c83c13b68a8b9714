# expect: TW0010 at 2:8
name = b"gemm"
