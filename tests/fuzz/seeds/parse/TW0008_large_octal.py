note = "\777"
