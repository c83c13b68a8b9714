# expect: TW0054 at 2:17
x = sum(i * (2) for i in range(4) if [i])
