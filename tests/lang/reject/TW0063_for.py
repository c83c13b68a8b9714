# expect: TW0063 at 4:1
for i in x:
    pass
else:
    pass
