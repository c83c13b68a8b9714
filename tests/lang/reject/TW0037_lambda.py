# expect: TW0037 at 2:15
x = lambda y, y: y
