# expect: TW0059 at 3:1
x = 1
del x, y
