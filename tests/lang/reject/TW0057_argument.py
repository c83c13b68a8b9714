# expect: TW0057 at 2:5
f(y := 1)
