@tw.kernel() x
def f():
    pass
