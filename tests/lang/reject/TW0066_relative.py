# expect: TW0066 at 2:6
from . import common
