# expect: TW0008 at 2:9
note = "\ud800"
