# expect: TW0032 at 2:7
x = a.if
