# expect: TW0031 at 2:1
/ = 1
