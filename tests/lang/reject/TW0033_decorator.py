# expect: TW0033 at 2:14
@tw.kernel() x
def f():
    pass
