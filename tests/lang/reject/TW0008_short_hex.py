# expect: TW0008 at 2:10
note = "a\x4"
