"""Our layout operations against pycute (PyPI nvidia-cutlass), CuTe's own model in pure Python: 10,000 random cases each.

A case counts when pycute gives an answer that satisfies the operation's own post-condition, checked here by evaluating it.
For every such case ours must give an answer, the same function, and, where both promise it, the same structure (strides of
modes of extent 1 are nobody's promise and are ignored). Cases where pycute raises, or answers wrongly, are not lost: ours
must then be an error, or satisfy the post-condition itself. Where the two differ on purpose:

  composition      pycute composes B's modes one by one and does not check that their sum is what A gives (carries), nor that
                   extents divide ((4,2):(1,10) o 6:1 silently becomes 4:1). Ours refuses both; and finds compositions by
                   listing that pycute's assertions refuse.
  complement       of overlapping modes: pycute can produce an extent of 0. Ours names the modes.
  right_inverse    pycute stops at the first stride 0 or repeated stride; ours goes on, so pycute's is a prefix of ours.
  left_inverse     of layouts whose strides leave gaps that do not divide: pycute's does not undo the layout. Ours does.
  logical_product  by an integer n: pycute divides instead (a slip in the library). Ours repeats, as by n:1.
  Swizzle(0,M,0)   pycute never returns from evaluating a shift of 0; ours is the identity.

Run: python -m pytest tests/layout/test_pycute_oracle.py   (TILEWRIGHT_PROGRAM names the binary, TILEWRIGHT_SEED the seed)
"""

import os
import pathlib
import random
import subprocess

import pytest

pycute = pytest.importorskip("pycute", reason="nvidia-cutlass is not installed; run scripts/setup.sh")
from pycute import Layout, make_layout  # noqa: E402

CASES = int(os.environ.get("TILEWRIGHT_ORACLE_CASES", "10000"))
SEED = int(os.environ.get("TILEWRIGHT_SEED", "20240607"))
ROOT = pathlib.Path(__file__).resolve().parents[2]


def program():
    found = os.environ.get("TILEWRIGHT_PROGRAM", str(ROOT / "build/bin/tilewright"))
    if not os.path.exists(found):
        pytest.skip(f"no program at {found}; build it first")
    return found


def ours(expressions):
    done = subprocess.run([program(), "layout", "--batch"], input="\n".join(expressions) + "\n", capture_output=True,
                          text=True, check=True)
    answers = done.stdout.splitlines()
    assert len(answers) == len(expressions)
    return answers


# ---- text ---------------------------------------------------------------------------------------------------------------


def text(x):
    if x is None:
        return "_"
    if isinstance(x, Layout):
        return f"{text(x.shape)}:{text(x.stride)}"
    if isinstance(x, tuple):
        return "(" + ",".join(text(i) for i in x) + ("," if len(x) == 1 else "") + ")"
    return str(x)


def read_tuple(s, at=0):
    if s[at] != "(":
        end = at
        while end < len(s) and (s[end].isdigit() or s[end] == "-"):
            end += 1
        return int(s[at:end]), end
    items, at = [], at + 1
    while s[at] != ")":
        item, at = read_tuple(s, at)
        items.append(item)
        if s[at] == ",":
            at += 1
    return tuple(items), at + 1


def read_layout(s):
    shape, at = read_tuple(s)
    assert s[at] == ":", s
    stride, at = read_tuple(s, at + 1)
    assert at == len(s), s
    return Layout(shape, stride)


# ---- random layouts -----------------------------------------------------------------------------------------------------


class Maker:
    def __init__(self, name):
        self.r = random.Random(f"{SEED} {name}")

    def shape(self, room, depth=2):
        if depth == 0 or self.r.random() < 0.35:
            return min(room, self.r.choice([1, 2, 2, 3, 4, 4, 5, 6, 8, 8, 12]))
        modes = []
        for _ in range(self.r.randint(1, 3)):
            modes.append(self.shape(room, depth - 1))
            room = max(1, room // pycute.product(modes[-1]))
        return tuple(modes)

    def unflatten(self, values, profile):
        values = iter(values)

        def walk(p):
            return tuple(walk(i) for i in p) if isinstance(p, tuple) else next(values)

        return walk(profile)

    def wild(self, room=36):
        shape = self.shape(room)
        strides = [self.r.choice([0, 1, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48]) for _ in pycute.flatten(shape)]
        return Layout(shape, self.unflatten(strides, shape))

    def nested(self, room=36, gaps=True):
        shape = self.shape(room)
        extents = pycute.flatten(shape)
        order = list(range(len(extents)))
        self.r.shuffle(order)
        strides = [0] * len(extents)
        step = self.r.choice([1, 1, 1, 2, 3]) if gaps else 1
        for i in order:
            strides[i] = step
            step *= extents[i] * (self.r.choice([1, 1, 1, 2, 3]) if gaps else 1)
        return Layout(shape, self.unflatten(strides, shape))

    def any(self, room=36):
        return self.r.choice([self.wild, self.nested, lambda n: self.nested(n, False)])(room)

    def ranked(self, room=36):
        while True:
            layout = self.nested(room)
            if isinstance(layout.shape, tuple) and len(layout.shape) > 1:
                return layout

    def tiler(self, layout):
        parts = []
        for i in range(self.r.randint(1, len(layout))):
            kind = self.r.random()
            n = self.r.choice([1, 2, 2, 3, 4])
            parts.append(None if kind < 0.1 else n if kind < 0.4 else Layout(n, self.r.choice([1, 1, 2])) if kind < 0.8 else self.nested(4))
        return tuple(parts)


# ---- what an answer must satisfy, evaluated point by point --------------------------------------------------------------


def extended(a):
    """A past its end: the coalesced layout, whose last mode pycute lets run on."""
    c = pycute.coalesce(a)
    return lambda i: c(i)


def composed_well(result, a, b):
    f = extended(a)
    n = pycute.size(b)
    return pycute.size(result) == n and all(result(i) == f(b(i)) for i in range(n))


def complement_well(result, a, top):
    if any(s < 1 for s in pycute.flatten(result.shape)):
        return False
    points = [result(j) for j in range(pycute.size(result))]
    seen = {a(i) for i in range(pycute.size(a))}
    return (points == sorted(set(points)) and points[0] == 0
            and len({p + s for p in points for s in seen}) == len(points) * len(seen))


def divided_well(result, a, b):
    b = Layout(b) if isinstance(b, int) else b
    if b is None:
        return True
    rest = pycute.complement(b, pycute.size(a))
    if not complement_well(rest, b, pycute.size(a)):
        return False
    f = extended(a)
    return (pycute.size(result[0]) == pycute.size(b) and pycute.size(result[1]) == pycute.size(rest)
            and all(result[0](i) + result[1](j) == f(b(i) + rest(j))
                    for i in range(pycute.size(b)) for j in range(pycute.size(rest))))


def produced_well(result, a, b):
    if b is None:
        return True
    top = pycute.size(a) * pycute.cosize(b)
    rest = pycute.complement(a, top)
    return complement_well(rest, a, top) and result[0] == a and composed_well(result[1], rest, b)


def without_units(layout):
    """Strides of extent-1 modes are zeroed: no operation promises them."""

    def walk(shape, stride):
        if isinstance(shape, tuple):
            return tuple(walk(s, d) for s, d in zip(shape, stride))
        return 0 if shape == 1 else stride

    return layout.shape, walk(layout.shape, layout.stride)


def same_structure(mine, theirs):
    return without_units(mine) == without_units(theirs)


# ---- the harness --------------------------------------------------------------------------------------------------------


def hold_against_pycute(name, make_case, expression, oracle, satisfied, agree, least_share=0.05):
    """make_case(maker) -> arguments; oracle(*arguments) -> pycute's answer; satisfied(answer, *arguments): is it right?"""
    maker = Maker(name)
    compared = refused_by_both = 0
    while compared < CASES:
        cases = [make_case(maker) for _ in range(min(CASES, 5000))]
        answers = ours([expression(*case) for case in cases])
        before = compared
        for case, answer in zip(cases, answers):
            what = f"{expression(*case)}: ours {answer}, seed {SEED}"
            try:
                theirs = oracle(*case)
                right = satisfied(theirs, *case)
            except (AssertionError, ZeroDivisionError, IndexError):
                right = False
            if right:
                assert not answer.startswith("error"), f"{what}, pycute {theirs}"
                agree(read_layout(answer), theirs, what, *case)
                compared += 1
                if compared == CASES:
                    break
            elif answer.startswith("error"):
                refused_by_both += 1
            else:
                assert satisfied(read_layout(answer), *case), f"{what} breaks the post-condition"
        assert compared - before > least_share * len(cases) or compared == CASES, f"{name}: pycute supports too few of these cases"
    print(f"{name}: {compared} compared, {refused_by_both} refused by both")


def exactly(mine, theirs, what, *case):
    assert same_structure(mine, theirs), f"{what}, pycute {text(theirs)}"


def always(*_):
    return True


# ---- one test per operation ---------------------------------------------------------------------------------------------


def test_coalesce():
    hold_against_pycute("coalesce", lambda m: (m.any(),), lambda a: f"coalesce({text(a)})", pycute.coalesce, always, exactly)


def test_coalesce_by_profile():
    def case(m):
        a = m.ranked()
        return a, tuple(1 for _ in range(m.r.randint(1, len(a))))

    hold_against_pycute("coalesce by profile", case, lambda a, p: f"coalesce({text(a)},{text(p)})", pycute.coalesce, always, exactly)


def test_filter():
    hold_against_pycute("filter", lambda m: (m.wild(),), lambda a: f"filter({text(a)})", pycute.filter, always, exactly)


def test_filter_by_profile():
    def case(m):
        a = m.wild()
        a = a if isinstance(a.shape, tuple) else make_layout(a, a)
        return a, tuple(1 for _ in range(m.r.randint(1, len(a))))

    hold_against_pycute("filter by profile", case, lambda a, p: f"filter({text(a)},{text(p)})", pycute.filter, always, exactly)


def test_composition():
    hold_against_pycute("composition", lambda m: (m.any(), m.any(24)), lambda a, b: f"composition({text(a)},{text(b)})",
                        pycute.composition, composed_well, exactly)


def test_composition_by_mode():
    def case(m):
        a = m.ranked()
        return a, m.tiler(a)

    def satisfied(result, a, tiler):
        return all(b is None or composed_well(result[i], a[i], Layout(b) if isinstance(b, int) else b) for i, b in enumerate(tiler))

    hold_against_pycute("composition by mode", case, lambda a, t: f"composition({text(a)},{text(t)})", pycute.composition, satisfied, exactly)


def test_complement():
    def case(m):
        return m.any(24), m.r.randint(1, 150)

    hold_against_pycute("complement", case, lambda a, n: f"complement({text(a)},{n})", pycute.complement,
                        lambda r, a, n: complement_well(r, pycute.filter(a), n), exactly)


def test_right_inverse():
    def satisfied(result, a):
        return all(a(result(i)) == i for i in range(pycute.size(result)))

    def prefix(mine, theirs, what, a):
        assert satisfied(mine, a), what
        n = pycute.size(theirs)
        assert n <= pycute.size(mine), f"{what}, pycute {text(theirs)}"
        if n == pycute.size(mine):
            exactly(mine, theirs, what)
        assert all(mine(i) == theirs(i) for i in range(n)), f"{what}, pycute {text(theirs)}"

    hold_against_pycute("right_inverse", lambda m: (m.any(),), lambda a: f"right_inverse({text(a)})", pycute.right_inverse, satisfied, prefix)


def test_left_inverse():
    def satisfied(result, a):
        f = extended(result)
        return all(f(a(i)) == i for i in range(pycute.size(a)))

    hold_against_pycute("left_inverse", lambda m: (m.any(),), lambda a: f"left_inverse({text(a)})", pycute.left_inverse, satisfied, exactly)


def test_logical_divide():
    hold_against_pycute("logical_divide", lambda m: (m.any(), m.nested(8)), lambda a, b: f"logical_divide({text(a)},{text(b)})",
                        pycute.logical_divide, divided_well, exactly)


def by_mode(m):
    a = m.ranked()
    return a, m.tiler(a)


def product_by_mode(m):
    a = m.ranked(12)
    return a, tuple(Layout(t, 1) if isinstance(t, int) else t for t in m.tiler(a))


def pair(name, result, i):
    """(inside, rest) of mode i, wherever the grouping has put them."""
    return make_layout(result[0][i], result[1][i] if name.startswith("zipped") else result[1 + i])


@pytest.mark.parametrize("name", ["zipped_divide", "tiled_divide"])
def test_grouped_divides(name):
    def satisfied(result, a, tiler):
        return all(divided_well(pair(name, result, i), a[i], b) for i, b in enumerate(tiler))

    hold_against_pycute(name, by_mode, lambda a, t: f"{name}({text(a)},{text(t)})", getattr(pycute, name), satisfied, exactly)


def test_logical_divide_by_mode():
    def satisfied(result, a, tiler):
        return all(divided_well(result[i], a[i], b) for i, b in enumerate(tiler))

    hold_against_pycute("logical_divide by mode", by_mode, lambda a, t: f"logical_divide({text(a)},{text(t)})", pycute.logical_divide,
                        satisfied, exactly)


def test_logical_product():
    hold_against_pycute("logical_product", lambda m: (m.nested(12), m.nested(8, m.r.random() < 0.3)),
                        lambda a, b: f"logical_product({text(a)},{text(b)})", pycute.logical_product, produced_well, exactly)


@pytest.mark.parametrize("name", ["zipped_product", "tiled_product"])
def test_grouped_products(name):
    def satisfied(result, a, tiler):
        return all(produced_well(pair(name, result, i), a[i], b) for i, b in enumerate(tiler))

    hold_against_pycute(name, product_by_mode, lambda a, t: f"{name}({text(a)},{text(t)})", getattr(pycute, name), satisfied, exactly)


# ---- numbers ------------------------------------------------------------------------------------------------------------


def compare_numbers(name, cases):
    answers = ours([expression for expression, _ in cases])
    for (expression, expected), answer in zip(cases, answers):
        assert read_tuple(answer)[0] == expected, f"{name}: {expression} is {answer}, pycute {expected}, seed {SEED}"
    assert len(cases) >= CASES


def test_size_and_cosize():
    m = Maker("size")
    layouts = [m.any() for _ in range(CASES)]
    compare_numbers("size", [(f"size({text(a)})", a.size()) for a in layouts])
    compare_numbers("cosize", [(f"cosize({text(a)})", a.cosize()) for a in layouts])


def test_crd2idx_with_integer_and_full_coordinates():
    m = Maker("crd2idx")
    cases = []
    while len(cases) < CASES:
        a = m.any()
        i = m.r.randrange(a.size())
        coordinate = pycute.idx2crd(i, a.shape)
        cases.append((f"at({text(a)},{i})", a(i)))
        cases.append((f"at({text(a)},{text(coordinate)})", pycute.crd2idx(coordinate, a.shape, a.stride)))
    compare_numbers("crd2idx", cases)


def test_idx2crd():
    m = Maker("idx2crd")
    cases = []
    while len(cases) < CASES:
        a = m.nested(gaps=False)
        i = m.r.randrange(a.size())
        cases.append((f"idx2crd({i},{text(a.shape)})", pycute.idx2crd(i, a.shape)))
        cases.append((f"idx2crd({a(i)},{text(a)})", pycute.idx2crd(a(i), a.shape, a.stride)))
    compare_numbers("idx2crd", cases)


def test_swizzled_offsets():
    m = Maker("swizzle")
    cases = []
    while len(cases) < CASES:
        bits = m.r.randint(0, 3)
        shift = m.r.choice([1, 1, 1, -1]) * m.r.randint(max(bits, 1), bits + 3)
        base = m.r.randint(0, 4)
        a, offset = m.any(), m.r.randint(0, 64)
        composed = pycute.ComposedLayout(pycute.Swizzle(bits, base, shift), offset, a)
        i = m.r.randrange(a.size())
        cases.append((f"at(Sw<{bits},{base},{shift}> o {offset} o {text(a)},{i})", composed(i)))
    compare_numbers("swizzle", cases)


# ---- the differences on purpose, pinned so that a change in either is noticed ------------------------------------------


def test_known_differences():
    answers = ours(["composition((4,2):(1,10),6:1)", "composition((4,4):(1,100),(4,2):(1,2))", "complement((4,2):(1,2),16)",
                    "right_inverse((2,4):(0,1))", "left_inverse((2,2):(1,3))", "logical_product(4:1,3)"])
    assert answers[0].startswith("error: composition") and text(pycute.composition(Layout((4, 2), (1, 10)), Layout(6, 1))) == "4:1"
    wrong = pycute.composition(Layout((4, 4), (1, 100)), Layout((4, 2), (1, 2)))
    assert answers[1].startswith("error: composition") and wrong(7) == 5 and Layout((4, 4), (1, 100))(5) == 101
    assert answers[2].startswith("error: complement") and 0 in pycute.flatten(pycute.complement(Layout((4, 2), (1, 2)), 16).shape)
    assert answers[3] == "4:2" and text(pycute.right_inverse(Layout((2, 4), (0, 1)))) == "1:0"
    assert answers[4] == "(3,2):(1,2)" and pycute.left_inverse(Layout((2, 2), (1, 3)))(3) != 2
    assert answers[5] == "(4,3):(1,4)" and pycute.logical_product(Layout(4, 1), 3) == pycute.logical_divide(Layout(4, 1), 3)
