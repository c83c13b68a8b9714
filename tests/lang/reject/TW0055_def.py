# expect: TW0055 at 2:1
async def f():
    await g()
