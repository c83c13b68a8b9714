# expect: TW0005 at 3:4
x = 1
if !x:
    pass
