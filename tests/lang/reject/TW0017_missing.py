# expect: TW0017 at 3:1
for i in tw.range(4):
x = 1
