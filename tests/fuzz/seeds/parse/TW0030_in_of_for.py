for i of x:
    pass
