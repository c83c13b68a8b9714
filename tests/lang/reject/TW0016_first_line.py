# expect: TW0016 at 2:5
    x = 1
