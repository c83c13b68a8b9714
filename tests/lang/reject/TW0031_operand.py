# expect: TW0031 at 2:8
x = 1 +
