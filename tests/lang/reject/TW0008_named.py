# expect: TW0008 at 2:9
note = "\N{DASH}"
