# expect: TW0030 at 2:17
from tilewright bring bf16
