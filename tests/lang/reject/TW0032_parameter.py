# expect: TW0032 at 2:10
def f(a, 1):
    pass
