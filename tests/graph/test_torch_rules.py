"""Rules of the PyTorch front end, without torch: order, scatters, arcs, losses. Each is proved, and right beside numpy."""
import pathlib
import sys

import numpy
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from torch_rules import run, written  # noqa: E402


@pytest.fixture(autouse=True)
def library():
    from tilewright import _library as found
    try:
        found.library_path()
    except Exception:
        pytest.skip("libtilewright.so is not built")


def normal(seed, *shape):
    return numpy.random.default_rng(seed).standard_normal(shape).astype(numpy.float32)


def places(seed, most, *shape):
    return numpy.random.default_rng(seed).integers(0, most, shape)


def result(op, arrays, results, arguments, folder, keywords=None, **more):
    return run(written(op, arrays, results, arguments, keywords, **more), arrays, folder)[0]


@pytest.mark.parametrize("shape, dim, descending", [((3, 12), 1, False), ((5, 4, 3), 0, True), ((2, 33), -1, True)])
def test_sorted_with_places(shape, dim, descending, tmp_path):
    x = numpy.round(normal(1, *shape) * 2)  # with equal elements: they keep their order
    values, at = result("sort", {"x": x}, [(shape, "float32"), (shape, "int64")], ["x", dim, descending], tmp_path)
    order = numpy.argsort(-x if descending else x, axis=dim, kind="stable")
    assert (at == order).all() and (values == numpy.take_along_axis(x, order, dim)).all()


def test_integers_are_sorted_as_they_are(tmp_path):
    x = places(2, 9, 3, 10) + (1 << 40)  # more than f32 holds
    values, _ = result("sort", {"x": x}, [(x.shape, "int64"), (x.shape, "int64")], ["x", 1, False], tmp_path)
    assert (values == numpy.sort(x, 1)).all()


@pytest.mark.parametrize("shape, count, dim, largest", [((4, 16), 3, 1, True), ((9, 6), 2, 0, False), ((2, 1030), 4, -1, True)])
def test_the_first_few(shape, count, dim, largest, tmp_path):
    """Ranks of short lines; of long ones, the extreme of what is left, again and again."""
    x = normal(3, *shape)
    x[0, :2] = -numpy.inf if largest else numpy.inf
    to = [count if d == dim % len(shape) else s for d, s in enumerate(shape)]
    values, at = result("topk", {"x": x}, [(to, "float32"), (to, "int64")], ["x", count, dim, largest], tmp_path)
    order = numpy.take(numpy.argsort(-x if largest else x, axis=dim, kind="stable"), range(count), dim)
    assert (at == order).all() and (values == numpy.take_along_axis(x, order, dim)).all()


def test_nothing_is_taken_twice(tmp_path):
    """A line of -inf alone has four different first places."""
    x = numpy.full((1, 1030), -numpy.inf, numpy.float32)
    values, at = result("topk", {"x": x}, [((1, 4), "float32"), ((1, 4), "int64")], ["x", 4], tmp_path)
    assert at.tolist() == [[0, 1, 2, 3]] and (values == -numpy.inf).all()


@pytest.mark.parametrize("op, arguments, rank", [("kthvalue", ["x", 3, 1], 2), ("median", ["x", 1], 5)])
def test_one_of_a_line(op, arguments, rank, tmp_path):
    x = normal(4, 4, 12)
    values, at = result(op, {"x": x}, [((4,), "float32"), ((4,), "int64")], arguments, tmp_path)
    assert (values == numpy.sort(x, 1)[:, rank]).all() and (at == numpy.argsort(x, 1)[:, rank]).all()


@pytest.mark.parametrize("op, so_far", [("cummax", numpy.maximum), ("cummin", numpy.minimum)])
def test_extremes_so_far(op, so_far, tmp_path):
    x = numpy.round(normal(5, 3, 14))
    values, at = result(op, {"x": x}, [(x.shape, "float32"), (x.shape, "int64")], ["x", 1], tmp_path)
    expected = so_far.accumulate(x, 1)
    last = [[max(j for j in range(i + 1) if row[j] == best[i]) for i in range(14)] for row, best in zip(x, expected)]
    assert (values == expected).all() and at.tolist() == last


@pytest.mark.parametrize("how", ["last", "number", "add"])
@pytest.mark.parametrize("shape, stored, dim", [((4, 10), (4, 6), 1), ((5, 4), (12, 4), 0), ((4, 7), (3, 1), 1)])
def test_scatter(how, shape, stored, dim, tmp_path):
    """Places may be the same: the last one stays, or all are added up. A shorter index leaves the other lines as they are."""
    x, source, index = normal(6, *shape), normal(7, *stored), places(8, shape[dim], *stored)
    arrays = {"x": x, "i": index} if how == "number" else {"x": x, "i": index, "s": source}
    expected = x.astype(numpy.float64)
    for at in numpy.ndindex(*stored):
        to = tuple(index[at] if d == dim else p for d, p in enumerate(at))
        expected[to] = expected[to] + source[at] if how == "add" else 2.5 if how == "number" else source[at]
    y, = result("scatter_add" if how == "add" else "scatter", arrays, [(shape, "float32")], ["x", dim, "i", 2.5 if how == "number" else "s"], tmp_path)
    numpy.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("how", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("own", [True, False])
def test_scatter_reduce(how, own, tmp_path):
    x, source, index = normal(9, 3, 5), normal(10, 3, 8), places(11, 4, 3, 8)  # the last place gets nothing
    y, = result("scatter_reduce", {"x": x, "i": index, "s": source}, [(x.shape, "float32")], ["x", 1, "i", "s", how], tmp_path, {"include_self": own})
    fold = {"sum": numpy.sum, "prod": numpy.prod, "mean": numpy.mean, "amax": numpy.max, "amin": numpy.min}[how]
    for row, place in numpy.ndindex(*x.shape):
        met = source[row][index[row] == place]
        expected = x[row, place] if len(met) == 0 else fold(numpy.append(met, x[row, place]) if own else met)
        assert y[row, place] == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_integers_and_truths_are_stored_as_they_are(tmp_path):
    x, source, index = places(12, 9, 3, 6) + (1 << 40), places(13, 9, 3, 4) - (1 << 40), places(14, 6, 3, 4)
    y, = result("scatter", {"x": x, "i": index, "s": source}, [(x.shape, "int64")], ["x", 1, "i", "s"], tmp_path)
    expected = x.copy()
    for r in range(3):
        for j in range(4):
            expected[r, index[r, j]] = source[r, j]
    assert (y == expected).all()


@pytest.mark.parametrize("indices, adds", [(["i", None], False), ([None, "i"], True), (["i", "j"], True)])
def test_index_put(indices, adds, tmp_path):
    """Negative places are counted from the end."""
    x, i, j = normal(15, 4, 5), numpy.array([-1, 1, 1]), numpy.array([0, -2, 3])
    arrays = {"x": x, "i": i} | ({"j": j} if "j" in indices else {})
    key = tuple({"i": i, "j": j}.get(k, slice(None)) for k in indices)
    source = normal(16, *x[key].shape)
    y, = result("index_put", dict(arrays, s=source), [(x.shape, "float32")], ["x", indices, "s", adds], tmp_path)
    expected = x.copy()
    if adds:
        numpy.add.at(expected, key, source)
    else:
        expected[key] = source
    numpy.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape, indices", [((4, 5), ["i", "j"]), ((4, 3, 5), ["i", None, "j"]), ((4, 5, 2), ["i"])])
def test_several_indices(shape, indices, tmp_path):
    """Also apart from each other: then the index's dimensions come first."""
    from tilewright import _torch_scatter
    from torch_rules import Known, Node, Value
    from tilewright import graph
    x, i, j = normal(17, *shape), numpy.array([[-1, 1, 2], [0, 0, 3]]), numpy.array([0, -2, 3])
    arrays = {"x": x, "i": i} | ({"j": j} if "j" in indices else {})
    expected = x[tuple({"i": i, "j": j}.get(k, slice(None)) for k in indices)]
    g = graph._Graph("index")
    g.known = Known()
    for name, a in arrays.items():
        g.leaf("inputs", name, Value(a.shape, a.dtype.name))
    made = _torch_scatter.index(g, Node("n", "index", Value(expected.shape, "float32")), ["x", indices], {})
    y, = run(g.to_json([made]), arrays, tmp_path)[0]
    assert (y == expected).all()


@pytest.mark.parametrize("op, inside", [("atan", 30), ("asin", 1), ("acos", 1), ("asinh", 1e4), ("acosh", 50), ("atanh", 0.999), ("erfinv", 0.999)])
def test_arcs(op, inside, tmp_path):
    x = (numpy.tanh(normal(18, 8, 8)) * inside).astype(numpy.float32)
    x = abs(x) + 1 if op == "acosh" else x
    y, = result(op, {"x": x}, [(x.shape, "float32")], ["x"], tmp_path)
    exact = {"asin": numpy.arcsin, "acos": numpy.arccos, "atan": numpy.arctan, "asinh": numpy.arcsinh, "acosh": numpy.arccosh, "atanh": numpy.arctanh}.get(op)
    if exact is None:
        import math
        numpy.testing.assert_allclose(numpy.vectorize(math.erf)(y.astype(numpy.float64)), x, atol=3e-7)
    else:
        numpy.testing.assert_allclose(y, exact(x.astype(numpy.float64)), rtol=1e-6, atol=3e-7)


def test_angles_of_all_quadrants(tmp_path):
    y, x = numpy.array([0.0, 1, -1, 0, 2, -2, 0, numpy.inf, 3], numpy.float32), numpy.array([1.0, 1, 1, -1, -1, -2, 0, numpy.inf, 0], numpy.float32)
    made, = result("atan2", {"y": y, "x": x}, [(x.shape, "float32")], ["y", "x"], tmp_path)
    numpy.testing.assert_allclose(made, numpy.arctan2(y, x), rtol=1e-6)


@pytest.mark.parametrize("op", ["isnan", "isinf", "isfinite"])
def test_numbers_that_are_none(op, tmp_path):
    x = numpy.array([0, 1, -numpy.inf, numpy.inf, numpy.nan, 3e38], numpy.float32)
    y, = result(op, {"x": x}, [(x.shape, "bool")], ["x"], tmp_path)
    assert (y == getattr(numpy, op)(x)).all()


@pytest.mark.parametrize("ignored, weighted, how", [(-100, False, 1), (2, False, 1), (-1, True, 1), (-100, True, 2), (2, True, 0)])
def test_classes_that_are_left_out(ignored, weighted, how, tmp_path):
    logs = numpy.log(abs(normal(19, 6, 5)) + 0.1).astype(numpy.float32)
    target = numpy.array([0, ignored, 2, 4, ignored, 1])
    weight = (abs(normal(20, 5)) + 0.1) if weighted else numpy.ones(5, numpy.float32)
    arrays = {"x": logs, "t": target} | ({"w": weight} if weighted else {})
    kept = target != ignored
    share = numpy.where(kept, weight[numpy.where(kept, target, 0)], 0)
    rows = -logs[numpy.arange(6), numpy.where(kept, target, 0)] * share
    expected = [rows, rows.sum() / share.sum(), rows.sum()][how]
    y, = result("nll_loss_forward", arrays, [((6,) if how == 0 else (), "float32")], ["x", "t", "w" if weighted else None, how, ignored], tmp_path)
    numpy.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("right", [False, True])
def test_buckets(right, tmp_path):
    x, ends = numpy.round(normal(21, 3, 7)), numpy.array([-1.0, 0.0, 1.5], numpy.float32)
    y, = result("bucketize", {"x": x, "e": ends}, [(x.shape, "int64")], ["x", "e"], tmp_path, {"right": right})
    assert (y == numpy.searchsorted(ends, x, side="right" if right else "left")).all()


def test_patches_are_added_up(tmp_path):
    x = normal(22, 2, 2 * 4, 12)
    y, = result("col2im", {"x": x}, [((2, 2, 5, 4), "float32")], ["x", [5, 4], [2, 2], [1, 1], [0, 0], [1, 1]], tmp_path)
    expected = numpy.zeros((2, 2, 5, 4))
    patches = x.reshape(2, 2, 2, 2, 4, 3)
    for a, b in numpy.ndindex(2, 2):
        expected[:, :, a:a + 4, b:b + 3] += patches[:, :, a, b]
    numpy.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["int64", "int32"])
@pytest.mark.parametrize("op, fold", [("sum", numpy.sum), ("cumsum", numpy.cumsum), ("amax", numpy.max), ("amin", numpy.min), ("argmax", numpy.argmax), ("argmin", numpy.argmin)])
def test_integers_are_folded_exactly(op, fold, dtype, tmp_path):
    """Numbers of which f32 holds the first 24 bits only."""
    most = 1 << (46 if dtype == "int64" else 30)  # the emulator holds 53 bits
    x = (places(23, most, 3, 40) - most // 2).astype(dtype)
    x[1, 3:9] = x[1].max() if op == "argmax" else x[1].min()  # the first of equal ones
    made = "int64" if op in ("sum", "cumsum", "argmax", "argmin") else dtype
    expected = fold(x, 1).astype(made)
    arguments = ["x", [1]] if op in ("sum", "amax", "amin") else ["x", 1]
    y, = result(op, {"x": x}, [(expected.shape, made)], arguments, tmp_path)
    assert (y == expected).all()


def test_too_many_integers_are_refused():
    from tilewright.graph import Unsupported
    with pytest.raises(Unsupported, match="4096"):
        written("sum", {"x": places(24, 9, 2, 5000)}, [((2,), "int64")], ["x", [1]])


def test_a_sort_of_long_lines_is_refused():
    from tilewright.graph import Unsupported

    class Long:
        shape, dtype = (1, 1 << 20), numpy.dtype("float32")
    with pytest.raises(Unsupported, match="square"):
        written("sort", {"x": Long()}, [(Long.shape, "float32"), (Long.shape, "int64")], ["x", 1, False])


@pytest.mark.parametrize("length", [5, 9000])
def test_logsumexp_of_minus_infinity(length, tmp_path):
    """log(sum(exp)) of nothing is -inf, not NaN; a largest element that is stored itself stays what it is."""
    from one_graph import graph, leaf, node
    x = normal(25, 3, length)
    x[1] = -numpy.inf
    nodes = [node(name, op, ["x"], [3], dims=[1], keepdim=False) for name, op in (("y", "logsumexp"), ("t", "amax"))]
    made = graph([leaf("x", [3, length])], nodes)
    made["outputs"] = ["y", "t"]
    (y, top), _ = run(made, {"x": x}, tmp_path)
    assert y[1] == top[1] == -numpy.inf and (top == x.max(1)).all()
    for row in (0, 2):
        assert y[row] == pytest.approx(numpy.log(numpy.exp(x[row].astype(numpy.float64)).sum()), rel=1e-5)


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("corners", [False, True])
def test_points_between_four_elements(padding, corners, tmp_path):
    x, at = normal(26, 2, 3, 4, 5), normal(27, 2, 2, 6, 2)  # some points are outside
    y, = result("grid_sampler_2d", {"x": x, "g": at}, [((2, 3, 2, 6), "float32")], ["x", "g", 0, padding, corners], tmp_path)
    for b, i, j in numpy.ndindex(2, 2, 6):
        place = [(c * (e - 1) if corners else c * e) / 2 + (e - 1) / 2 for c, e in zip(at[b, i, j].astype(numpy.float64), (5, 4))]
        if padding:
            place = [min(max(p, 0), e - 1) for p, e in zip(place, (5, 4))]
        column, row = place
        expected = numpy.zeros(3)
        for r in (int(numpy.floor(row)), int(numpy.floor(row)) + 1):
            for c in (int(numpy.floor(column)), int(numpy.floor(column)) + 1):
                if 0 <= r < 4 and 0 <= c < 5:
                    expected += x[b, :, r, c] * (1 - abs(row - r)) * (1 - abs(column - c))
        numpy.testing.assert_allclose(y[b, :, i, j], expected, rtol=1e-4, atol=1e-5)


def test_more_parts_than_a_node_takes(tmp_path):
    arrays = {f"x{i}": normal(28 + i, 2, 3) for i in range(130)}
    y, = result("stack", arrays, [((2, 130, 3), "float32")], [list(arrays), 1], tmp_path)
    assert (y == numpy.stack(list(arrays.values()), 1)).all()


def test_places_are_whole_numbers(tmp_path):
    """What is done to a place is done to an integer, by a kernel of its own."""
    from one_graph import graph, leaf, node
    x = normal(30, 5, 9)
    nodes = [dict(node("a", "argmax", ["x"], [5], dim=1, keepdim=False), dtype="i64"), dict(node("r", "remainder", ["a", 4], [5]), dtype="i64"),
             dict(node("l", "lt", ["a", 3], [5]), dtype="bool"), dict(node("w", "where", ["l", -100, "r"], [5]), dtype="i64")]
    (y,), _ = run(graph([leaf("x", [5, 9])], nodes), {"x": x}, tmp_path)
    at = x.argmax(1)
    assert (y == numpy.where(at < 3, -100, at % 4)).all()
