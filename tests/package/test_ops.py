"""tilewright.ops without a GPU: numpy arrays, and torch's CPU tensors where there is torch, on the emulator, against fp64."""
import os
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))
np = pytest.importorskip("numpy")

import tilewright  # noqa: E402
import tilewright.ops as ops  # noqa: E402
from tilewright import _dispatch  # noqa: E402

random = np.random.default_rng(1)


def array(*shape):
    return random.standard_normal(shape).astype(np.float32)


def close(got, want):
    assert got.shape == want.shape
    assert np.linalg.norm(got.astype(np.float64) - want) <= 2e-6 * max(np.linalg.norm(want), 1e-30)


def softmax(x, axis):
    e = np.exp(x.astype(np.float64) - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@pytest.mark.parametrize("shape, dim", [((5, 300), -1), ((3, 4, 33), 1), ((7, 1), 0), ((1, 4100), -1)])
def test_softmax_along_any_dimension(shape, dim):
    x = array(*shape)
    close(ops.softmax(x, dim, strict=True), softmax(x, dim))


@pytest.mark.parametrize("n", [1, 5, 130, 1024, 3001])
def test_norms(n):
    x, w, b = array(6, n), array(n), array(n)
    d = x.astype(np.float64)
    centred = d - d.mean(-1, keepdims=True)
    close(ops.layernorm(x, w, b, 1e-5, strict=True), centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5) * w + b)
    close(ops.rmsnorm(x, w, strict=True), d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-6) * w)
    close(ops.rmsnorm(x, strict=True), d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-6))


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min"])
@pytest.mark.parametrize("dim", [None, 0, 1, 2])
def test_reductions(name, dim):
    x = array(3, 17, 40)
    close(np.asarray(getattr(ops, name)(x, dim, strict=True)), getattr(np, name)(x.astype(np.float64), axis=dim))


def test_scans_and_places():
    x = array(4, 77)
    close(ops.cumsum(x, strict=True), np.cumsum(x.astype(np.float64), -1))
    close(ops.cumsum(x, 0, strict=True), np.cumsum(x.astype(np.float64), 0))
    assert (ops.argmax(x, strict=True) == x.argmax(-1)).all() and (ops.argmin(x, 0, strict=True) == x.argmin(0)).all()


def test_elements_transposes_views():
    x = array(9, 50)
    close(ops.relu(x[:, 3:20], strict=True), np.maximum(x[:, 3:20], 0).astype(np.float64))
    close(ops.transpose(x.T, strict=True), x.astype(np.float64))
    gate, up = x[:, :25].astype(np.float64), x[:, 25:].astype(np.float64)
    close(ops.swiglu(x, strict=True), gate / (1 + np.exp(-gate)) * up)


def test_cross_entropy_ignores_what_it_is_told_to():
    x, target = array(8, 60), random.integers(0, 60, 8)
    target[3] = -100
    log = np.log(softmax(x, -1))
    want = -log[np.arange(8), np.where(target < 0, 0, target)] * (target >= 0)
    close(ops.cross_entropy(x, target, reduction="none", strict=True), want)
    assert abs(float(ops.cross_entropy(x, target, strict=True)) - want.sum() / 7) < 1e-5


def test_a_shape_no_kernel_takes_is_named():
    with pytest.raises(tilewright.TilewrightError, match="float64|f64"):
        ops.softmax(array(3, 4).astype(np.float64), strict=True)
    with pytest.raises(tilewright.TilewrightError, match="no dimension 5"):
        ops.softmax(array(3, 4), 5)


def test_every_operation_of_the_table_has_its_kernels():
    for name, candidates in _dispatch.table().items():
        for file, kernel in candidates:
            module = tilewright.load(os.path.join(ROOT, "kernels", file))
            assert kernel in module.kernels, f"{name}: {file} has no kernel {kernel}"


def test_constants_that_nobody_chose_come_from_tuned_data():
    module = tilewright.load("attention_sm90.py", D=256)
    assert set(module.kernels) == {"attention", "attention_causal"}
    assert "BN = 64" in module.attention.source() or "BN = 80" in module.attention.source()
    # A pair that was not tuned: f16, eight heads a group.
    tilewright.load("attention_sm90.py", D=256, DT="f16", G=8)


def test_random_shapes_with_torch():
    pytest.importorskip("torch")
    done = subprocess.run([sys.executable, os.path.join(ROOT, "bench", "ops.py"), os.devnull, "--device", "cpu", "--cases", "64", "--seconds", "240"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    assert done.returncode == 0, done.stdout


def refused(call, *words):
    with pytest.raises(tilewright.TilewrightError) as caught:
        call()
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_what_is_no_tensor_number_or_text_is_said():
    x = array(5, 40)
    for wrong in (None, 5, [[1.0, 2.0]], np.float32(3), "x"):
        refused(lambda: ops.softmax(wrong), "softmax: x is a torch tensor or a numpy array", type(wrong).__name__)
    refused(lambda: ops.softmax(np.ma.masked_array(x, mask=x > 0)), "MaskedArray")  # what is masked would be read
    refused(lambda: ops.softmax(x, "last"), "dim is a whole number")
    refused(lambda: ops.softmax(x, 1.5), "dim is a whole number")
    refused(lambda: ops.rmsnorm(x, eps="small"), "eps is a number")
    refused(lambda: ops.matmul(x, x.T, bias=5), "bias is a torch tensor")
    for wrong in (x.astype("complex64"), np.array([["a"] * 4]), np.zeros((5, 40), [("a", "f4"), ("b", "f4")]), np.zeros((5, 40), ">f4"), np.zeros((5, 0), "float32")):
        refused(lambda: ops.softmax(wrong))


def test_views_of_any_kind_are_what_numpy_says():
    x = array(6, 81)
    views = [x[:, 1:], x[:, ::-1], x[::-1, ::2], x.T, np.broadcast_to(x[0], (5, 81)), np.frombuffer(b"\0" + x.tobytes(), "uint8")[1:].view("float32").reshape(6, 81)]
    views.append(x.copy())
    views[-1].setflags(write=False)
    for v in views:
        close(ops.softmax(v, strict=True), softmax(v.astype(np.float64), -1))


def test_operands_that_do_not_fit_the_result_are_refused():
    a, b = array(6, 16).astype(np.float16), array(16, 24).astype(np.float16)
    want = a.astype(np.float64) @ b.astype(np.float64)
    h = lambda *shape: array(*shape).astype(np.float16)  # noqa: E731
    for shape in ((24, 6), (2, 3, 24), (12, 24), (23,)):
        refused(lambda: ops.matmul(a, b, residual=h(*shape)), "residual", "(6, 24)")  # (24, 6) has as many elements, in other places
    for shape in ((6,), (7,), (2, 6, 24)):
        refused(lambda: ops.matmul(a, b, bias=h(*shape)), "bias", "(6, 24)")
    refused(lambda: ops.matmul(a, b, row_scale=h(5)), "row_scale has 5")
    refused(lambda: ops.matmul(a, b, column_scale=h(23)), "column_scale has 23")
    for shape in ((6, 24), (1, 24), (24,), (6, 1)):
        r = h(*shape)
        assert np.abs(ops.matmul(a, b, residual=r).astype(np.float64) - (want + r.astype(np.float64))).max() < 0.05
    refused(lambda: ops.linear(a, h(16)), "weight (N, K)")
    refused(lambda: ops.rmsnorm_residual(array(2, 3, 40), array(3, 2, 40)), "shape of x")
    refused(lambda: ops.rmsnorm_backward(array(40, 5), array(5, 40)), "shape of x")
    refused(lambda: ops.attention_backward(*[h(1, 2, 8, 64)] * 2, h(1, 0, 8, 64), h(1, 0, 8, 64), h(1, 2, 8, 64), array(1, 2, 8)), "attention_backward")
    refused(lambda: ops.attention_backward(*[h(8)] * 6), "attention_backward")


def test_indices_are_whole_numbers_of_32_bits():
    x = array(4, 60)
    refused(lambda: ops.cross_entropy(x, np.array([0, (1 << 32) + 1, 2, 3])), "32 bits")  # its low bits are a class
    refused(lambda: ops.cross_entropy(x, np.array([0.9, 1.0, 2.0, 3.0])), "whole numbers")
    refused(lambda: ops.cross_entropy(x, np.zeros((2, 2), int)), "target")
    cache = [array(16, 8), array(16, 8)]
    before = [c.copy() for c in cache]
    refused(lambda: ops.cache_update(array(4, 8), array(4, 8), *cache, np.array([0, 1 << 32, 2, 3])), "32 bits")
    assert all((c == b).all() for c, b in zip(cache, before))
    key, value = array(4, 8), array(4, 8)
    ops.cache_update(key, value, *cache, np.array([3, -1, 0, 15]))
    for new, c, b in ((key, cache[0], before[0]), (value, cache[1], before[1])):
        b[[3, 0, 15]] = new[[0, 2, 3]]
        assert (c == b).all()


def test_rows_and_numbers_are_added_by_their_index():
    out, rows, index = array(5, 8), array(7, 8), np.array([4, 0, 4, -1, 2, 5, 4])
    wanted = out.copy()
    kept = (index >= 0) & (index < 5)
    np.add.at(wanted, index[kept], rows[kept])
    ops.index_add(out, index, rows)
    assert np.allclose(out, wanted, atol=1e-5)
    refused(lambda: ops.index_add(out, index[:3], rows), "index_add")
    refused(lambda: ops.index_add(out, np.full(7, 1 << 32), rows), "32 bits")
    assert ops.bincount(np.array([3, 0, 3, 9, -2]), 4).tolist() == [1, 0, 0, 2]
    refused(lambda: ops.bincount(np.array([3, 0]), 0), "length")


def test_the_optimizer_takes_sensible_rates():
    g = array(8, 16)
    refused(lambda: ops.adam(g, g.copy(), g.copy(), g.copy(), g.copy(), step=1, beta1=1.0), "beta1")
    refused(lambda: ops.adam(g, g.copy(), g.copy(), g.copy(), g.copy(), step=1), "bf16")


def test_kernels_by_hand_refuse_what_is_no_argument():
    module = tilewright.load("vector_add.py")
    kernel = next(iter(module.kernels.values()))
    refused(lambda: kernel.source(99), "variants")
    refused(lambda: kernel.source(-1), "variants")
    refused(lambda: tilewright.loads(b"x"), "bytes")
    refused(lambda: tilewright.loads("x = " + "(" * 100000))
