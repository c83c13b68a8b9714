if a:
	x = 1
	if b:
		y = 2
	# comment

	z = 3
else:
        w = 4
