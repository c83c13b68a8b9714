# expect: TW0106 at 2:24
from tilewright import f33
