x = 1
text = """never
closed
