# expect: TW0033 at 2:8
x = 1; if a: pass
