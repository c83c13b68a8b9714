# expect: TW0034 at 2:1
a, b: int = 1
