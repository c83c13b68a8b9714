# expect: TW0056 at 2:1
match (x, y):
    case _:
        pass
