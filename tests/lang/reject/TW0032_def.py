# expect: TW0032 at 2:5
def (a):
    pass
