# expect: TW0030 at 2:7
for i of x:
    pass
