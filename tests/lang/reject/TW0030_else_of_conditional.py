# expect: TW0030 at 2:11
x = a if b
