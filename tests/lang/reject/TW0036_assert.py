# expect: TW0036 at 2:10
assert a = 1
