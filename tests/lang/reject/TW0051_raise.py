# expect: TW0051 at 2:1
raise ValueError
