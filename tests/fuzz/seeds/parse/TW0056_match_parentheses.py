match (x, y):
    case _:
        pass
