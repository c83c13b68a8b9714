# expect: TW0030 at 2:14
x = {1: 2, 3 4}
