# expect: TW0044 at 3:1
x = 1
elif x:
    pass
y = 1
