class Tile:
    def f(self):
        self.x = {1, 2}
