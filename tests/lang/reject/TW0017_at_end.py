# expect: TW0017 at 3:1
def f():
