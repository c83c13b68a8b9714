# expect: TW0062 at 2:10
def f(a, **options):
    pass
