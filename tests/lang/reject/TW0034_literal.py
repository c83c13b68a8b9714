# expect: TW0034 at 2:5
for 1 in x:
    pass
