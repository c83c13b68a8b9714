# expect: TW0057 at 2:6
if y := 1:
    pass
