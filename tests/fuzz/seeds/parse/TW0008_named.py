note = "\N{DASH}"
