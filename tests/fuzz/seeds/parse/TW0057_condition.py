if y := 1:
    pass
