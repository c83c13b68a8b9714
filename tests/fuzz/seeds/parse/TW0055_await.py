x = await f()
