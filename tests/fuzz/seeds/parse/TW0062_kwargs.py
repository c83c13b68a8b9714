def f(a, **options):
    pass
