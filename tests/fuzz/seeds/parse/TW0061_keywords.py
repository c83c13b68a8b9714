f(a, **options)
