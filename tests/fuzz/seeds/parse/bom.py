# BOM, and a comment
x = 1
