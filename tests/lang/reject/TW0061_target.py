# expect: TW0061 at 2:4
a, *b = c
