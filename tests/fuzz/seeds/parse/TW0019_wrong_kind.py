x = f(a]
y = 1
