# expect: TW0036 at 2:8
x = (a = 1)
