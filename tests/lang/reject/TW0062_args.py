# expect: TW0062 at 2:7
def f(*args):
    pass
