for i in x:
    def f():
        continue
