# expect: TW0016 at 3:5
x = 1
    y = 2
