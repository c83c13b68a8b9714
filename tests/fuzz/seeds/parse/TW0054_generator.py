x = sum(i * (2) for i in range(4) if [i])
