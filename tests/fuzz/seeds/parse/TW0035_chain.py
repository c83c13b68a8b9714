a = b = 0
