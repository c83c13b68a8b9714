# expect: TW0019 at 2:6
x = a)
y = 1
