# expect: TW0020 at 2:1
\
x = 1
