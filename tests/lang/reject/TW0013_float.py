# expect: TW0013 at 2:6
x = -1e999
