x = a.if
