# expect: TW0056 at 2:1
match x:
    case 1 | 2:
        pass
    case {"a": b, **rest}:
        pass
