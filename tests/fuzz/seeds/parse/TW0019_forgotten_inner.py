x = f(a[1)
