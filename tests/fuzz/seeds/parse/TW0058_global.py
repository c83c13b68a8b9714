def f():
    global n
    n = 1
