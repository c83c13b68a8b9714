# expect: TW0063 at 4:1
while x:
    pass
else:
    y = 1
z = 2
