for i in tw.range(4)
    pass
