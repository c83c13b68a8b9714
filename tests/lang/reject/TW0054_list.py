# expect: TW0054 at 2:8
x = [i for i in range(4)]
y = 1
