# expect: TW0005 at 2:4
x = 1
