# expect: TW0042 at 2:1
return 1
