# expect: TW0061 at 2:6
f(a, **options)
