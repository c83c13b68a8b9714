x = 1 + lambda: 2
