for i in x:
    pass
else:
    pass
