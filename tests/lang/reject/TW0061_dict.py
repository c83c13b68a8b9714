# expect: TW0061 at 2:6
x = {**a, "b": 1}
