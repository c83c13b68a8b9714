def f():
    import tilewright as tw
