# expect: TW0037 at 2:10
def f(a, a):
    pass
