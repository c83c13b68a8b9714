# expect: TW0052 at 2:24
from tilewright import *
