note = "\ud800"
