# expect: TW0011 at 2:5
x = 0b12
