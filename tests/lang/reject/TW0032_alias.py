# expect: TW0032 at 2:21
import tilewright as
