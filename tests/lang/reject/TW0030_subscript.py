# expect: TW0030 at 2:9
x = a[1 2]
