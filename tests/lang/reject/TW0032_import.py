# expect: TW0032 at 2:8
import 1
