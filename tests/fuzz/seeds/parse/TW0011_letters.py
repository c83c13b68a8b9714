x = 12abc + 1
