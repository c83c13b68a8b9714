# expect: TW0018 at 2:5, TW0037 at 3:10, TW0031 at 4:9, TW0030 at 5:22, TW0005 at 6:15, TW0018 at 7:12, TW0050 at 8:1, TW0007 at 10:5, TW0036 at 11:6, TW0061 at 12:11, TW0059 at 14:5
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
