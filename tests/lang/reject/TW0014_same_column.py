# expect: TW0014 at 4:2
if a:
        x = 1
	y = 2
