# expect: TW0061 at 2:9
x = [1, *rest]
