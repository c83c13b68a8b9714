# expect: TW0034 at 2:1
f(x) = 1
