# expect: TW0043 at 2:1
break
