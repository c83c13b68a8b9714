# expect: TW0050 at 3:1
@dataclass
class Tile:
    x: int
