x = {i: 1 for i in range(4)}
