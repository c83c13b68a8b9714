def f(*args):
    pass
