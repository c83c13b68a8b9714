# expect: TW0301 at 8:5
import tilewright as tw
from tilewright import bf16, e4m3, f32, i32, i8

M, N, K = tw.sizes("M N K")


def helper(x):
    return x
