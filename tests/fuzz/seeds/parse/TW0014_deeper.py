if a:
        if b:
	 x = 1
