x = 1
elif x:
    pass
y = 1
