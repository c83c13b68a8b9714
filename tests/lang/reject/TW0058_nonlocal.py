# expect: TW0058 at 3:5
def f():
    nonlocal n
