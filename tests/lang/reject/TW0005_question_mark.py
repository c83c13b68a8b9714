# expect: TW0005 at 2:7
x = a ? b : c
