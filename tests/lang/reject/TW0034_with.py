# expect: TW0034 at 2:11
with a as f():
    pass
