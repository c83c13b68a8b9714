# expect: TW0034 at 2:1
None = 1
