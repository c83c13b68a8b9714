# expect: TW0005 at 2:5
x =  1
