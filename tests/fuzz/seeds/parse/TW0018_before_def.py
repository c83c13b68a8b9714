x = f(a, [b
def g():
    pass
