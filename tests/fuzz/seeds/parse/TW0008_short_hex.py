note = "a\x4"
