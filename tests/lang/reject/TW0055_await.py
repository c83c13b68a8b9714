# expect: TW0055 at 2:5
x = await f()
