# expect: TW0017 at 2:7
if a: for i in b: pass
