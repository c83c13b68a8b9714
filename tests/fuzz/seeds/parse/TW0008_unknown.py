note = "a\d"
