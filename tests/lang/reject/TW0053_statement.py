# expect: TW0053 at 3:5
def f():
    yield 1
