import tilewright
import tilewright as tw, tilewright.layout as layout
import tilewright.layout
from tilewright import bf16
from tilewright import (
    f16,
    f32 as real,
)

x: int = 3
y: tw.Tensor(f16, 4)
x.y: int = 4
pair: tuple = (1, 2)
x += 1; x -= 1; x *= 2; x /= 2; x //= 2; x %= 2; x **= 2; x @= y
x <<= 1; x >>= 1; x &= 1; x |= 1; x ^= 1
x.y[0] += f(x)
a, b = b, a
(a, b), c = c, (a, b)
[a, b] = c
a.b, c[0] = d
a, = b


def nothing(): pass


def params(a, b: int, c: tw.const = 3, d=None,) -> tw.Tensor(f32, 1):
    return a, b


@tw.inline
@tw.kernel(target="sm_80", ranges={"BM": [64, 128]})
def decorated(a):
    "docstring"

    def inner(b):
        return

    return inner(a)


for i in tw.range(4): f(i)
for i, j in tw.tiles(M, N):
    for (k, l), m in n:
        continue
    break
for i, in x:
    pass
for i in 1, 2, 3:
    pass

while a < b:
    a += 1
    if a:
        break
    elif b: continue
    elif c:
        pass
    else:
        while True: pass

if a: b = 1; c = 2;
else: d = 3

with tw.role("producer"):
    pass
with tw.role("a") as a, tw.role("b") as b, c:
    pass
with (tw.role("a") as a, tw.role("b")):
    pass
with (tw.role("a") as a,
      tw.role("b") as b,):
    pass
with (a):
    pass
with (a, b):
    pass
with (a, b) as c:
    pass
with (a or b).c as (d, e):
    pass

assert a == b
assert a, "why"
match = 1
case = match
type = case
print(match)
