x = (1 +
def f(a, a):
    y = = 2
    for i in range(4)
        z = 1 $ 2
    return [1, 2
class C:
    pass
w = "open
if a = b:
    q = f(*args)
else:
    del q
