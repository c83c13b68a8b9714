# expect: TW0007 at 3:8
x = 1
text = """never
closed
