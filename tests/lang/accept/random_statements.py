"""Random statements of a generator that both parsers must read alike."""
assert ...
def match(p, q: (
   +b +  # c
 "a\n\x41" @ 1_000), r=[a and 1e5, """m
n""", x1]) -> 0xFf:
    match: ((x1 - _y).print).a
    with (a(match(k0='t', k1=r'\d')) as print, tw(("s", )) as a):
        pass; match = case / tw & "s"
    return "a\n\x41" @ False or 1.5 and [..., 0xFf, _y]
@x1(k=(("p" 'q').a).print if tw % ... else [case])
def b(p, q: (True,) is not ..., r=case @ M < ~"""m
n""" < (lambda p, q=1: """u""") + M):
    while ((1,),):
        while [1_000 <= tw[00:M], -M, (lambda p, q=1: 't')]:
            _y = "é" >> "a\n\x41" or 42, match[::(  match)]
        if (None, ) * a:
            b: not tw
        elif []:
            M: case[(  {"a\n\x41": print, ...: x1}):, :] = 3.25e+2 & M
            b: b // None
        else:
            assert (
   x1 +  # c
 .5), 42
    return case((), k0=tw() if M + False else ...)
pass; tw = "é" // "s"
assert (lambda p, q=1: x1), (b).tw ^ (lambda p, q=1: x1)
pass; tw = "a\n\x41" & True + False
with (_y(()) as tw, print("a\n\x41") as M):
    with (match(1_000 in 1e5) as case, x1(_y | "é" if -x1 else match) as a):
        b: (
   match +  # c
 """u""") = False
def a(p, q: ... - case, r=(lambda p, q=1: case[::tw, _y:x1, 0o7:])) -> x1:
    while x1 // """m
n""":
        assert +{print: 0}
    return ~match
with x1(True):
    b: (
   None +  # c
 "s" * M)
    if (tw(x1, k0="a\n\x41", k1=tw)).match:
        # comment

        x1({} in (
   a +  # c
 x1))
    elif ([a, a], ):
        tw = match[:, match[::0o7]:'t', ::.5 / _y] - ( None ), (True, 't',  )
    else:
        match = not match, r'\d'
        if (lambda : 1.5):
            b = print[:, match:M, """u""":] << (lambda p: ...), +{a: match, match: r'\d'}
            assert True, 1
        else:
            assert """u"""
            pass; match = (True,  )
a //= 1
... % True
@x1(k=x1[tw:"p" 'q', ::b >> 1, case(k0=tw, k1=print):0xFf] << (print and b,  M,  [1e5],  ))
def M(p, q: print | tw, r=case @ b):
    @match(k=(lambda p, q=1: +match))
    def _y(p, q: (
   (False,42, M, ) +  # c
 (
   "p" 'q' +  # c
 (case,  b,  ))), r=a((
   .5 +  # c
 .5), k0=x1 % print)) -> _y:
        if False:
            (tw, match), tw = (print, False, )
        elif b and a @ {False: 0}:
            match //= () @ ~b
            00
        return b if M else match
    return (_y("a\n\x41")).b
with x1([tw] if (x1) else tw // 't' or (  print)) as M:
    with (_y(+print[::"p" 'q' or case, ::tw]), tw(( (  0b10) >> tw )) as a):
        if (tw).M:
            a: "é"
        elif "a\n\x41":
            _y **= M + tw and x1 @ ( False  ) ** None
            _y[0] = 1.5
        else:
            a >>= _y
            match //= [tw, r'\d']
x1 //= (lambda p: "p" 'q')
if (lambda p, q=1: a):
    match += 0o7
    {(
   M +  # c
 match): b + 't'}
# comment

match(case & """m
n""")
case = b, False
pass; a = (lambda p: (  True  )) | "é" // +1.5
_y.f = False
(b, case), a = b(k0=match, k1='t')
_y: M = b
with M(() if 1.5 else M % (.5,)):
    x1: "s" = True
assert {_y: print}
# comment

match((b, case,))
a += False
# comment

tw(1_000 if r'\d' else ... if match | match else match(print))
case = (False,  match,r'\d', ), """u"""
# comment

tw("""m
n""")
while True:
    case: tw(_y, M, k0=[match, M]) / [_y] = match << 1_000
# comment

a(case)
_y = M, tw[( 1E-3) & (lambda p, q=1: b):, (lambda p: "a\n\x41"), :]
match, M = []
while 1e5:
    for _y in [tw != ...]:
        def x1(p, q: M[[None, True]], r=1):
            pass; b = print
            match.f = """m
n""" // """m
n""" if M == tw else 1e5
            return None
        for (b, M), M in _y or x1:
            b: a if x1 else False - M
            tw[0] = tw[x1 / x1:, {x1: b}:]
    assert not 1.5, .5
if (3.25e+2).a:
    match += print
while (_y,) - (lambda p: a):
    a, print = "a\n\x41" + "é"
    ()
print **= match[::b and 1, tw:] @ [x1]
(M("s", match)  )
M += case >> match
# comment

print([] << [... % match, ()])
pass; tw = (lambda p, q=1: 3.25e+2) & [_y]
with case(None if a else tw), case({}):
    def tw(p, q: {"é" not in b: 2. or _y, "s" << x1: print if 't' else ()}, r="é"):
        if a:
            assert "p" 'q' << (tw).b ** False - x1
            b: (lambda : x1) = case if print else (  tw )
        elif (  False):
            pass; match = "p" 'q'
            assert ..., (
   1_000 +  # c
 x1) @ x1
        elif {}:
            match[0] = (True // 0b10).M
            pass; a = (42 + 3.25e+2).case
        else:
            assert [(lambda p: _y)]
        while 1.5:
            tw = ..., ( ["é", tw] )
            print = tw << 't', M @ _y
        return ("p" 'q' and a).x1
x1: M * tw - "a\n\x41" | "s" = +("a\n\x41")
x1 **= ()
for case[0] in case["a\n\x41" or print(M, k0=1, k1=_y):M(k0=None, k1=print)]:
    with (a(_y - M), _y("é")):
        match //= tw @ b
    pass; tw = ((lambda p: False) )
with case(case or 1E-3) as a, _y(~a) as case:
    case = a, ...
M >>= 't'
M: (lambda p: M)
# comment

b(M)
def case(p, q: (lambda p: (  't')), r=tw) -> print(... and 0b10, .5):
    with print(("""m
n""" )) as case, a(0xFf ^ 1e5) as print:
        while tw:
            assert (lambda p: x1(r'\d', k0=None)), M(k0="""u""" and print)
            match: b[x1 if False else print]
    return 't'
assert case
for _y.f in tw(00, k0="""u""", k1=None):
    with (case({print: b, match: M}), case(a(_y, b, k0=match, k1=tw))):
        _y = tw(a(3.25e+2, M), M + (  x1 ), k0=(print ))
        while b:
            (lambda : (case).match)
            tw, match = print or r'\d' ^ ... if (lambda p, q=1: ~00) else False and False % 42
() >> False if (a,  a,) else ( (0b10,))
with (tw({(...,  ): (
   case[:, print, 42:] +  # c
 1E-3 or b), (lambda p, q=1: a): {None: {"é": "é"}, ... >> b: False}}) as M):
    assert {match: "p" 'q', False: "s"}
    b //= print[(
   (print, tw,  _y,  ) +  # c
 a):x1 if 't' else None, ::(True).x1, :]
_y: _y() = (
   match +  # c
 _y)
while (
   """m
n""" +  # c
 b):
    if a:
        pass; b = [(
   M +  # c
 a)]
        with (match((lambda p: ~tw)), b((
   ... is a == ["a\n\x41", _y] +  # c
 ( (lambda : None)))) as _y):
            _y //= (lambda : match)
pass; M = (lambda p: match) * (tw).print
M = (lambda p: (
   _y +  # c
 _y)) | (lambda p: 0b10), ...
assert b, match((  b  ) + 2., ... ^ case, k0=match or _y << b)
with (x1(match), match((not 1_000)._y) as a):
    match = 0xFf or () @ +M and match, print[M:, 00]
    assert ( M ) if (M, b,) else 0xFf
with (match(x1 & "a\n\x41" == None if ... else 1e5) as _y):
    print += (lambda p, q=1: [case, 0b10])
    for match in case(k0=print, k1=0o7) if case // a else x1(tw, _y):
        for tw.f in _y['t':, :, 0xFf]:
            x1 % ...
for a[0] in (
   None +  # c
 x1) * (
   True +  # c
 ...):
    assert ~(lambda : tw), (a).b
    for _y in ("""u""",  M,  tw, ):
        with (a(1 // False if tw else case if M else 1_000 / (b, True,print,  ))):
            None
        with M(b(True >> 1.5, 0b10 >> r'\d')):
            case = {M: case}, tw and .5
            assert match // match
assert case
assert M[:, ::M[:]]
# comment

_y(tw)
with b({r'\d': "p" 'q', "s": tw}):
    tw **= case
    assert False
( ...)
match, match = {{match: True}: print - tw}
if ("""m
n""", ):
    for b.f in match(_y, None) ** None | b // 1e5:
        a = (None).x1
        case **= M
    _y.f = print[:]
elif (
   ( (lambda p: match) ) +  # c
 (
   1_000 +  # c
 a)):
    if _y >> M:
        for case in ("é" ** [print, a]).case:
            a //= True
            tw: match(k0=1e5, k1=match) = a(k0="""u""", k1=b) & (
   a +  # c
 match)
        case //= a[(3.25e+2):(lambda p, q=1: "s")]
    else:
        if (
   1_000 +  # c
 (lambda p: "é")):
            a: match / M = 3.25e+2
            match: M = (x1[:],(tw)._y,  {},  )
if case:
    (b, a), match = match(k0=(
   True +  # c
 """u"""))
    b = "é", M / _y / 't' is not 1E-3
else:
    case: 3.25e+2 + match
# comment

case(x1)
while """u""":
    pass; x1 = ... | 0o7
# comment

_y(x1)
(x1, tw), x1 = print >> None
pass; tw = {match % True: _y - (
   1 +  # c
 "s")}
match **= []
if M:
    print = (lambda p, q=1: 1e5) if a[...:, match:] else tw(a, k0=x1, k1=match), []
    with (_y(( M )) as match):
        't' if match else 't'
        if b:
            (match, _y), tw = M >> True
        elif ...:
            tw += """m
n""" and "é" < [x1, case]
        else:
            b = "s", a
            a **= M if case else tw
elif M / x1:
    x1 = match((False, ), a not in M, k0=1E-3 if () else tw, k1=(  case  ))
# comment

print(a)
1e5
a //= "s"
a + r'\d'
assert []
for tw.f in {(lambda p: 1e5 or b): M or """m
n"""}:
    with (case((lambda p: 3.25e+2 // tw)) as tw, print(2.)):
        with M((  0xFf)) as M:
            pass; x1 = (
   x1(...) +  # c
 't')
        assert a[.5:(True)._y, False:x1, {tw: M, case: 00}:]
# comment

_y("é")
pass; tw = match(case, k0=print[0b10, ...:])
1.5 + tw
with M(... - 1E-3), _y(tw * _y ^ (True  )):
    tw.f = 42 / None | 0xFf
    M: (
   00 +  # c
 "s") <= -'t'
...
( a[:, :]  )
with M((lambda p: a) if M - 0b10 else ~tw):
    pass; _y = match[:, _y:None ^ ...]
assert {case[a:]: match, [None, "p" 'q', M]: _y}
match = (case[False:True, :]).M, ~x1
pass; b = 1E-3
pass; print = ((lambda : _y)).b
(
   (  0b10) is (a,_y,  x1,) +  # c
 _y - True)
def x1(p, q: (lambda p, q=1: match), r=[True] / print % print << None):
    while [(  M  ), (1e5 ), (lambda : ...)]:
        with (a((lambda : print + x1)) as x1, case((  print))):
            (  (
   False +  # c
 ~_y) )
            case
    @match(k=((print  )).case)
    def print(p, q: x1(print[0:, :, ::tw], k0=tw[::x1]), r=(match ) << M) -> (...):
        _y(k0=True, k1=print) % 0
        # comment

        print({print: tw} ^ _y[2.])
        return (a or a)
    return False is (lambda p, q=1: "s")
def match(p, q: {}, r=match < tw in (
   b +  # c
 """u""")) -> print:
    while (lambda : match if print else M):
        case: (lambda p, q=1: False or ...) = None
    return {True: M} in print()
_y: 2. is not print
@print(k=case)
def x1(p, q: case((
   None +  # c
 x1), k0=M ** M, k1=match), r=["""u""", b] << M[::tw, case]):
    assert (lambda p: b) if (
   .5 +  # c
 0o7) else {1E-3: a, print[:, :]: (
   .5 +  # c
 tw)}
    return ( print << None) and ()
assert ((case).case,)
if (match,False,):
    @b(k=(case).a)
    def print(p, q: M, r=tw):
        with (tw((
   tw + print +  # c
 (tw).match)) as M):
            x1 >>= 1 if x1 else False % {1: 1_000}
        return not print <= tw(k0=1.5)
assert 1
with (print((
   {1e5: (lambda p, q=1: None), None or b: M} +  # c
 (
   M[00:print] +  # c
 2.))), a({(lambda p: 1.5): (lambda : b), M(): tw // case[:]})):
    with (_y(0b10 >> "é")):
        def M(p, q: "p" 'q' if None else 0o7, r=(( None  ) )) -> True:
            1e5
            (x1, match), M = x1 << a | -x1
            return _y
    assert 3.25e+2 >> M
[match[True, 3.25e+2:_y, M:(42)], (lambda p: tw), (lambda : ...) / (0xFf)]
b: print if case else 1_000 << match(M, k0=(a).case, k1=2. if 0 else 1) = [tw, b, True]
[tw, 00]
if b is not 0xFf:
    pass; x1 = _y(k0=-"s", k1=( x1  ))
    with (case([(  b  ), ...]) as match, tw([["é", print]])):
        if case[:, 3.25e+2:, tw:M]:
            case: (tw  )
            match: (
   b +  # c
 "p" 'q')
elif a:
    with (tw(0xFf & print) as b, match(42 < None) as case):
        assert x1 & 1_000 and (
   a +  # c
 case) ^ (  a )
        with _y((... is True).match), match((1.5).M) as print:
            print, _y = x1 if a else a
            x1 //= M and a | """u"""
    while a:
        with (case(_y)):
            pass; print = ...
            print: ()
        assert False in 1_000, b(k0=print("a\n\x41", 00, k0=print, k1=print), k1={})
elif (
   1e5 +  # c
 tw):
    assert x1 != a, (
   a is False +  # c
 {00: 0b10})
else:
    assert (lambda p, q=1: True), tw
    _y = case(case, (0,  1E-3,), k0=_y ** """m
n"""), "s"
with (match(False)):
    # comment

    tw(M[b:] | tw)
for print, match in 1:
    assert print + match / tw // a
    # comment

    _y([False, M, 0o7])
while ... | print:
    M **= x1[print:, b:2., b]
    def a(p, q: M if b else r'\d' or False if True else 0xFf, r=False // 't') -> ("""m
n""",  ):
        # comment

        tw(M // _y)
        return None in (1E-3,r'\d',  a,  )
while M:
    with case(False) as a:
        assert (_y(tw, x1, k0="é")).x1
    if {...: _y, b: None}:
        with (tw(False % x1 ^ x1) as _y):
            M = 't', (lambda : ('t',0b10,"a\n\x41",  ) / M)
            _y //= match in case
    elif ("p" 'q',x1 is not a, M,):
        _y >>= (
   tw +  # c
 print is not .5)
    else:
        _y is not """m
n""" in ( x1  )
with (x1(~"a\n\x41" >> ()) as case, x1({1.5 or True: {}}) as a):
    assert 1E-3, [case, 3.25e+2, match]
for tw[0] in (lambda p: x1):
    with case(( print )) as match, case(1_000) as b:
        if (  (1e5 )  ):
            assert (b * tw).case
            assert M >> (False,)
@match(k=(tw,  _y,  case,))
def match(p, q: match, r=a[:]):
    a = _y
    print **= _y if 1 else 1E-3
    return M if x1 else tw if 't' is _y else tw - "p" 'q'
# comment

a(case)
_y: (x1 in case).M
tw //= (~00).M
b >>= ()
0 if x1 else b if ... | 0xFf else tw | case
pass; tw = ... / 1.5
_y: .5 if "a\n\x41" else None = """u""" if x1 else x1
if ([]).M:
    0 - print
elif (lambda p: ...):
    if [0b10, M, r'\d'] in (3.25e+2).x1:
        assert case or 00, (match).a is not print
    elif (lambda p: match):
        pass; x1 = M
    elif a(k0=[_y, a], k1=(
   b +  # c
 "é")):
        x1
        assert (
   b if 't' else tw +  # c
 (
   a(a, k0=None, k1=...) +  # c
 [case]))
    else:
        while a[::True, :, ::case]:
            tw = match(M, ..., k0=match), ([1.5, print, match],  {3.25e+2: False},  {case(k0=a): .5 - False},)
            (a, tw), b = {_y != {True: M}: (  x1 not in _y  )}
        while not {...: match[::"é"]}:
            print: x1[print:, ::tw]
if _y:
    M(k0=2., k1='t') if tw(print, k0=...) else x1
    pass; tw = print(k0=_y, k1=None) or print([case, a, tw], 42)
elif tw // 1:
    match((
   match +  # c
 "é"), k0=(None << print,x1 >> 3.25e+2,))
pass; print = {a(k0=42): ( _y)}
if a:
    pass; _y = -tw & (00).case
    b >>= 1
else:
    pass; b = {}
    with x1(00) as print:
        with b(match):
            case, print = a(x1)
        for b in False:
            match >>= {(...)._y: b >> 3.25e+2, ... | True: 2. / .5}
@tw(k=(case // match,))
def tw(p, q: match(k0=r'\d' + None, k1=1.5 * 0o7), r=("p" 'q', )):
    print: [( x1 ), [None]]
    return match >> 3.25e+2 @ "é" >> (r'\d' << 1e5).M
True ** a
pass; a = []
while x1:
    match = [None // case]
    match.f = tw[match:, ::True, :]
pass; case = tw << "é" // M ** print
@print(k=~match)
def tw(p, q: not 1 and b(k0="""m
n"""), r={}) -> match | ... + () ** M:
    print = (lambda p: ...) != 1 % M, (lambda p: x1)
    return False
(tw)
with (tw((0).b), match(( 0b10) % ...) as a):
    if b:
        match >>= case
    elif [x1]:
        case = M[::match[::_y, "a\n\x41"], ::r'\d'], match((
   """u""" +  # c
 a), match, k0=r'\d' ** 1E-3, k1=match | tw)
    elif {match: b}:
        if 0o7:
            a, x1 = None
            a = None ^ 3.25e+2 ^ M, tw | """m
n"""
        elif _y <= "s":
            tw: _y[print(k0=_y, k1="p" 'q'):'t', ::case["s":a, "a\n\x41", 0xFf:], a]
            case: None
        elif [print]:
            (
   M +  # c
 tw) - r'\d' in False
        else:
            x1: "s" = ~1_000
        # comment

        M((b ** r'\d' @ case or b, a == x1,  x1 & +1_000, ))
    else:
        assert not True
        def M(p, q: 1.5, r=["""u""", tw, """m
n"""]) -> --.5:
            assert [("s" // M,), (  False  ), x1 @ x1]
            return "s" & print / b is not (.5,case,  _y,)
    for _y.f in b if _y else False:
        "s" % (
   M +  # c
 _y)
        with (_y([None, case] is not case != 00 if _y[:, :] else """u""" + 0xFf), case(b not in tw)):
            (1,) if (M).match else 2. @ print not in (
   x1 +  # c
 case)
            pass; M = [match, 1_000]
pass; match = (
   a +  # c
 b)
for _y[0] in M():
    tw = ..., (
   {} +  # c
 r'\d' & 1E-3)
with (x1(((lambda p: match - tw)).tw) as b):
    assert print & (1_000).match, case
    def case(p, q: 1.5, r=(...).match) -> (lambda p, q=1: (lambda : match)):
        # comment

        a(x1 & M or b)
        if (lambda p: 1E-3):
            x1 * "é"
        elif case:
            (match, M), tw = 2.
        elif (0b10 and print).x1:
            a: M
            match[0] = b >> 1_000
        else:
            (M, x1), match = {x1 + True: case}
        return (
   match +  # c
 't')
def a(p, q: r'\d' >> 1_000 or match, r=print) -> +match:
    print += (
   _y +  # c
 r'\d')
    if 0 % "s":
        with x1((lambda p, q=1: _y)), print(0 - 2.):
            pass; x1 = (lambda p, q=1: match)
        for print, print in 't':
            assert (None,  "a\n\x41", ) is not (case).a
    elif 0xFf:
        def _y(p, q: not _y, r=0b10) -> (False).tw:
            print: [] = [case, b, _y]
            assert (lambda p, q=1: x1[x1:]), {1E-3: 1.5, "a\n\x41": "a\n\x41"} ^ ("""u""").b
            return (
   +False +  # c
 "a\n\x41") if (_y, ) else [a]
        if (
   case +  # c
 False):
            assert M
    elif ():
        while a < M:
            a = "é" or "é", b
    return [['t', 00]]
_y[42, :]
x1 >>= M(k0=M, k1=_y)
while (b).match:
    for _y[0] in 't':
        while match(k0=None):
            a = [0o7, M, x1], b
            1E-3
    # comment

    M([])
M += x1
# comment

case(True if 3.25e+2 else False if (  print) else [])
if (lambda p, q=1: _y):
    while (lambda : "é") if ( a ) else (  ~... ):
        # comment

        case("""u""")
    b: tw << 0o7
elif M:
    assert (
   case & None +  # c
 None if 0 else _y), ({print: 1}).x1
    def b(p, q: x1, r=["s" and None]) -> a / None:
        b ** b
        return False & 2. ^ M != M
elif (
   False +  # c
 print):
    assert [case], 't' & 't' - a
    a[0] = "a\n\x41" % (False)
else:
    match **= (tw, )
    b **= b
for (case, M), print in True:
    while ... % _y:
        @tw(k=tw)
        def b(p, q: tw, r=(match).b):
            case //= M & print if ({_y: x1, _y: False}, b ** case,  a,) else (
   M +  # c
 x1)
            pass; match = 0xFf is not x1
            return ... if a else False
    # comment

    M((print).b)
with a(not case in a):
    def a(p, q: "a\n\x41", r=+...):
        a = True, match
        _y.f = """m
n""" if a else print in a & 0
        return match
    x1 //= None or case
while M[_y]:
    x1, x1 = (
   a +  # c
 print)
    case.f = x1(k0=2.)
assert {a(tw, k0="""m
n""", k1=.5): (lambda : a) // {match: 't'}, x1 & case != "a\n\x41" != match: (match or x1).a}
# comment

print([])
print = "é" >> True, a
# comment

M(print[::..., 1e5 and 42, [M, _y]])
with match((
   3.25e+2 +  # c
 match)) as x1, b(M(k0={tw: print})):
    pass; M = []
    [x1] @ 0o7
for tw in None:
    while match:
        for _y.f in (lambda p, q=1: 1):
            pass; a = (_y) <= b()
        while b:
            a(1e5, "p" 'q', k0='t') ** {"é": None, r'\d': a}
            match = -x1
    M //= [(lambda : print) ** False]
(
   a +  # c
 match)
assert b != []
def a(p, q: tw, r=M | print):
    with (_y((lambda p, q=1: (lambda : "a\n\x41") if ... * case else """u""" if match else 0xFf)), x1(...) as print):
        b **= ()
        assert (match[tw]).b, case((print).case)
    x1 = False % False, ( "s" )
    return print
print **= False // ... if ~"a\n\x41" else [0o7]
for case in not """m
n""" is 't':
    match.f = case
    match: "s"
