# expect: TW0064 at 3:5
def f():
    import tilewright as tw
