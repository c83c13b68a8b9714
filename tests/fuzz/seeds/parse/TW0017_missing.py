for i in tw.range(4):
x = 1
