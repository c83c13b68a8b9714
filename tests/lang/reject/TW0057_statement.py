# expect: TW0057 at 2:3
y := 1
