# expect: TW0014 at 4:3
if a:
        if b:
	 x = 1
