# expect: TW0015 at 5:7
if a:
    if b:
        x = 1
      y = 2
