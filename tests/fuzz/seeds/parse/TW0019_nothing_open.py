x = a)
y = 1
