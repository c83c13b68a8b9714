@tw.kernel()
x = 1
