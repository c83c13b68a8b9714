def f():
    nonlocal n
