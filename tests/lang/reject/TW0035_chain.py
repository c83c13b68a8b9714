# expect: TW0035 at 2:7
a = b = 0
