# expect: TW0043 at 4:9
for i in x:
    def f():
        continue
