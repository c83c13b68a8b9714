größe = 128
x = größe + 1
