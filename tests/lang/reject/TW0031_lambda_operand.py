# expect: TW0031 at 2:9
x = 1 + lambda: 2
