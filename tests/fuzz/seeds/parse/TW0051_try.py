try:
    x = 1
except (A, B) as e:
    y = 2
else:
    pass
finally:
    pass
z = 1
