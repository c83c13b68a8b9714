# expect: TW0053 at 3:9
def f():
    x = yield
