def f():
    x = yield
