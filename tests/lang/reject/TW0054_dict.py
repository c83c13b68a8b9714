# expect: TW0054 at 2:11
x = {i: 1 for i in range(4)}
