# expect: TW0019 at 2:10
x = f(a[1)
