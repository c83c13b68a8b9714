# expect: TW0030 at 2:11
x = [1, 2 3]
