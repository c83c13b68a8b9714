# expect: TW0040 at 2:8
f(a=1, a=2)
