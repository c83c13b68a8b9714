# expect: TW0108 at 5:1
import tilewright as tw

M = tw.sizes("M")
M = 3
