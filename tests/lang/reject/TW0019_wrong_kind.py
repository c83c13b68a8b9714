# expect: TW0019 at 2:8
x = f(a]
y = 1
