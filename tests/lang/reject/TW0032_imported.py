# expect: TW0032 at 2:29
from tilewright import bf16,
