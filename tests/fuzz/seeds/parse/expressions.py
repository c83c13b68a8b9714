a = 1; b = 0x1F; c = 0b1010; d = 0o17; e = 1_000_000; z = 00
f = 1.5; g = .5; h = 1.; i = 1e-5; j = 1_0.5_0e+1_0; tiny = 1e-999
yes, no, nothing, dots = True, False, None, ...
t0 = ()
t1 = (a,)
t2 = a, b
t3 = (a, b, (c, d))
l0 = []
l1 = [a, b,]
d0 = {}
d1 = {"a": 1, 'b': [2, 3], (1, 2): {}}
arith = a + b - c * d / e // f % g @ h
assoc = a - b - c - d
power = -a ** -b ** c
bits = a | b ^ c & d << e >> f
unary = -a + +b - ~c
nested = (a + b) * (c - (d / (e)))
cmp = a < b <= c == d != e >= f > g
member = a in b
not_member = a not in b
same = a is b
not_same = a is not b
logic = a and b or not c and (d or e) or f
mixed = not a == b
negated = not not a
choice = a if b else c
choices = a if b else c if d else e
inline = lambda: a
inline2 = lambda x, y=1: x + y
curried = lambda x: lambda y: x if y else (lambda: 0)
attr = a.b.c
call = f(a)(b, c=d, e=lambda x: x)(g,)
sub = x[0]
subs = x[0, 1:2, ::3, :, ..., a:b:c, -1:]
one = x[0,]
chain = x.y[1].z(2)[3:4](k=5).w
text = "plain" 'single' """triple "quotes" inside""" '''more'''
escapes = "a\n\t\\\"\'\x41\u00e9\U0001F600\101\0\
joined"
raw = r"a\d\"b" R'\n'
unicode = "größe – ✓ 漢字"
unit = u"old"
multi = """first
  second
third"""
big = 9223372036854775807
neg = -9223372036854775807
tuple_in_index = x[(a, b)]
call_in_index = x[f(a, b), g[c]]
long = (a +
        b  # a comment
        + c
)
cont = a + \
    b
spread = f(
    a,

    # a comment line
    b=1,
)
