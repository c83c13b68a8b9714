# expect: TW0031 at 2:7
x = a[]
