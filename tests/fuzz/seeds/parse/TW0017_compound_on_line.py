if a: for i in b: pass
