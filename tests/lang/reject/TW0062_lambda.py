# expect: TW0062 at 2:12
x = lambda *a: a
