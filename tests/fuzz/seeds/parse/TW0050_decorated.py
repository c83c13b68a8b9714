@dataclass
class Tile:
    x: int
