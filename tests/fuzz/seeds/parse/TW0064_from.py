if x:
    from tilewright import bf16
