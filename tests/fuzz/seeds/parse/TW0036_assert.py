assert a = 1
