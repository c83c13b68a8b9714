x = 1 + \  # one
    2
