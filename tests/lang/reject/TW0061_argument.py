# expect: TW0061 at 2:3
f(*args)
