# expect: TW0060 at 2:5
x = {1, 2}
