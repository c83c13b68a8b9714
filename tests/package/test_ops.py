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
