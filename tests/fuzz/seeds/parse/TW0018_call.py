x = f(a, b
y = 2
