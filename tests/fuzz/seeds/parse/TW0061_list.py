x = [1, *rest]
