# expect: TW0044 at 2:1
else:
    pass
