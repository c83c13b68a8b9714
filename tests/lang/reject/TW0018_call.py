# expect: TW0018 at 2:6
x = f(a, b
y = 2
