mask = 012
