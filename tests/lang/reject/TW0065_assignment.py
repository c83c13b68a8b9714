# expect: TW0065 at 2:1
@tw.kernel()
x = 1
