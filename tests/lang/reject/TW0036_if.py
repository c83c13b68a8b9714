# expect: TW0036 at 2:6
if a = 1:
    pass
