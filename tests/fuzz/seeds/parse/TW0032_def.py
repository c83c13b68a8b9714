def (a):
    pass
