# expect: TW0006 at 2:1, TW0006 at 3:5
größe = 128
x = größe + 1
