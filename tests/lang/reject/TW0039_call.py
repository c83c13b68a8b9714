# expect: TW0039 at 2:8
f(a=1, b)
