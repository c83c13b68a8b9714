while x:
    pass
else:
    y = 1
z = 2
