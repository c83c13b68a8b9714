# expect: TW0033 at 2:7
print "x"
