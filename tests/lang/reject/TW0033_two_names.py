# expect: TW0033 at 2:7
x = a b
