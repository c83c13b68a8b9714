# expect: TW0106 at 2:1
import numpy as np
