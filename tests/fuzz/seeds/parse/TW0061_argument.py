f(*args)
