# expect: TW0050 at 2:1
class Tile:
    def f(self):
        self.x = {1, 2}
