# expect: TW0030 at 2:21
for i in tw.range(4)
    pass
