x = 1; if a: pass
