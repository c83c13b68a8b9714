# expect: TW0011 at 2:8
mask = 012
