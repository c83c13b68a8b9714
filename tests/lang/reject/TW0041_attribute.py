# expect: TW0041 at 2:3
f(a.b=1)
