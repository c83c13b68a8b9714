# expect: TW0030 at 2:9
x = f(a b)
