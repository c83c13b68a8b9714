# expect: TW0031 at 2:4
x =
