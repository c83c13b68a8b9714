x = [i for i in range(4)]
y = 1
