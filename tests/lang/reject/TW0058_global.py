# expect: TW0058 at 3:5
def f():
    global n
    n = 1
