# expect: TW0066 at 2:6
from ...a import common
