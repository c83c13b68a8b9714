# expect: TW0020 at 2:9
x = 1 + \  # one
    2
