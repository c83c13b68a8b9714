# expect: TW0064 at 3:5
if x:
    from tilewright import bf16
