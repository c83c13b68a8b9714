match x:
    case 1 | 2:
        pass
    case {"a": b, **rest}:
        pass
