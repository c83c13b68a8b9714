# expect: TW0018 at 2:6, TW0018 at 2:10
x = f(a, [b
def g():
    pass
