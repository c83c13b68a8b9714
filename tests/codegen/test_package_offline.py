"""The Python package without a GPU: modules load, sources print, refusals speak of the argument."""
import json
import os
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))

import tilewright  # noqa: E402


def kernels(name, **constants):
    return tilewright.load(os.path.join(ROOT, "kernels", name + ".py"), **constants)


def test_kernels_are_attributes():
    module = kernels("reductions")
    assert set(module.kernels) == {"row_sum", "column_sum", "column_sum_atomic"}
    assert "sum(n, X[m, n])" in module.row_sum.computes
    with pytest.raises(AttributeError, match="row_sum"):
        module.no_such_kernel


def test_variants_and_constants():
    assert len(kernels("softmax").softmax.variants) == 2
    source = kernels("gemm_sm90", BN=128).gemm.source()
    assert "wgmma_m64n128k16" in source and "with BM = 128, BN = 128" in source


def test_unknown_constant():
    with pytest.raises(tilewright.TilewrightError, match="NOPE"):
        kernels("vector_add", NOPE=1)


def test_diagnostics_point_into_the_source():
    text = 'import tilewright as tw\n\n\n@tw.kernel(target="sm_80")\ndef f(A: tw.Tensor(tw.f32, Q)):\n    pass\n'
    with pytest.raises(tilewright.TilewrightError) as caught:
        tilewright.loads(text, name="mine.py")
    assert "mine.py:5" in str(caught.value) and "'Q'" in str(caught.value)


def test_arguments_are_named_in_refusals():
    add = kernels("vector_add").vector_add
    with pytest.raises(tilewright.TilewrightError, match="the argument B is missing"):
        add(object())
    with pytest.raises(tilewright.TilewrightError, match="A is object"):
        add(object(), object(), object())
    with pytest.raises(tilewright.TilewrightError, match="no parameter D"):
        add(1, 2, 3, D=4)
    with pytest.raises(tilewright.TilewrightError, match="takes 3 arguments"):
        add(1, 2, 3, 4)


def test_a_kernel_file_can_be_imported(tmp_path, monkeypatch):
    (tmp_path / "my_kernels.py").write_text(open(os.path.join(ROOT, "kernels", "vector_add.py")).read())
    monkeypatch.syspath_prepend(str(tmp_path))
    import my_kernels

    with pytest.raises(tilewright.TilewrightError, match="A is int"):
        my_kernels.vector_add(1, 2, 3)


class Capsule:
    """An array of another framework: a DLPack capsule over memory that nobody touches here."""

    def __init__(self, dims, device=2, code=2, bits=32, strides=None, address=1 << 20, lanes=1):
        import ctypes
        from tilewright._tensors import _DLTensor

        self.shape = (ctypes.c_int64 * len(dims))(*dims)
        self.steps = (ctypes.c_int64 * len(dims))(*strides) if strides else None
        self.tensor = _DLTensor(address, device, 0, len(dims), code, bits, lanes, self.shape, self.steps, 0)

    def __dlpack__(self, stream=None):
        import ctypes

        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.tensor), b"dltensor", None)


def refusal(call, *arguments):
    with pytest.raises(tilewright.TilewrightError) as caught:
        call(*arguments)
    return str(caught.value)


def test_dlpack_arguments_are_checked_by_name():
    add = kernels("vector_add").vector_add
    good = lambda n=100, at=1 << 20: Capsule([n], address=at)  # noqa: E731
    assert "A is in the CPU's memory, B in cuda:0" in refusal(add, Capsule([100], device=1), good(), good())
    assert "A is neither in CUDA memory nor in the CPU's" in refusal(add, Capsule([100], device=7), good(), good())
    assert "B has a type that kernels do not take" in refusal(add, good(), Capsule([100], code=5, bits=64), good())
    assert "B is f64, f32 is expected" in refusal(add, good(), Capsule([100], bits=64), good())
    assert "N is 99" in refusal(add, good(), good(99, 2 << 20), good(100, 3 << 20))
    assert "strides" in refusal(add, good(), Capsule([100], strides=[2], address=2 << 20), good(100, 3 << 20))
    assert "share memory" in refusal(add, good(), good(), good())
    assert "multiple of 16" in refusal(add, good(), good(100, (2 << 20) + 4), good(100, 3 << 20))
    assert "2 dimensions" in refusal(add, Capsule([10, 10]), good(), good())


def test_a_producer_that_refuses_is_quoted():
    class Stubborn:
        def __dlpack__(self, stream=None):
            raise BufferError("it needs a gradient")

    assert "needs a gradient" in refusal(kernels("vector_add").vector_add, Stubborn(), 1, 1)


def test_right_arguments_reach_the_driver():
    """Everything but the launch itself: what is missing then is a GPU, not an argument."""
    os.environ["TILEWRIGHT_HIDE"] = os.environ.get("TILEWRIGHT_HIDE", "")
    message = refusal(kernels("vector_add").vector_add, Capsule([100]), Capsule([100], address=2 << 20), Capsule([100], address=3 << 20)) if not has_driver() else "libcuda"
    assert "libcuda" in message or "driver" in message


def has_driver():
    import ctypes

    try:
        ctypes.CDLL("libcuda.so.1")
        return True
    except OSError:
        return False


def test_programs_are_called_like_kernels():
    module = kernels("split_k")
    assert {"split_k", "partial_products", "sum_splits"} <= set(module.kernels)
    assert "sum(k" in module.split_k.computes
    assert "the argument B is missing" in refusal(module.split_k, object())
    with pytest.raises(tilewright.TilewrightError, match="program of several launches"):
        module.split_k.source()


def test_the_decorator_on_a_function_of_ones_own_file(tmp_path, monkeypatch):
    text = (
        "from __future__ import annotations\nimport tilewright as tw\nfrom tilewright import f32\n\nN = tw.sizes('N')\n\n\n"
        "@tw.kernel(target='sm_80', computes='Y[i] = X[i] * 2.0', threads=128)\n"
        "def double(X: tw.Tensor(f32, N), Y: tw.Tensor(f32, N), BLOCK: tw.const(128, 256) = 256):\n"
        "    i = tw.grid(tw.cdiv(N, BLOCK)) * BLOCK\n    tw.store(Y[i : i + BLOCK], tw.load(X[i : i + BLOCK], fill=0.0) * 2.0)\n\n\n"
        "import os\n\nUNUSED = os.getcwd()\n\n\nclass Model:\n    factor = [3]\n\n\ndef plain_python():\n    return Model.factor[0]\n")
    (tmp_path / "own_kernels.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    import own_kernels

    assert own_kernels.plain_python() == 3
    assert "X is int" in refusal(own_kernels.double, 1, 2)
    assert "N is 5" in refusal(own_kernels.double, Capsule([4]), Capsule([5], address=2 << 20))


def test_only_what_is_in_the_language_is_read_and_lines_stay():
    text = ('import torch\nimport tilewright as tw\n\nN = tw.sizes("N")\nLOG = 2.0\nmodel = torch.nn.Linear(3, 4)\n\n@tw.kernel(target="sm_80", computes="Y[i] = X[i] * LOG", threads=128)\n'
            'def f(X: tw.Tensor(tw.f32, N), Y: tw.Tensor(tw.f32, N)):\n    i = tw.grid(tw.cdiv(N, 128)) * 128\n    tw.store(Y[i : i + 128], tw.load(X[i : i + 128], fill=0.0) * LOG)\n')
    assert tilewright.loads(text).f.variants[0]["line"] == 9
    assert "mine.py:11" in refusal(lambda: tilewright.loads(text.replace("tw.store(", "tw.stoer("), name="mine.py"))


def test_a_tuned_file_that_is_damaged_is_named(tmp_path):
    (tmp_path / "k.py").write_text(open(os.path.join(ROOT, "kernels", "vector_add.py")).read())
    (tmp_path / "k.tuned.json").write_text("{broken")
    assert "k.tuned.json" in refusal(tilewright.load, str(tmp_path / "k.py"))
    (tmp_path / "k.tuned.json").write_text('{"program": "of another text", "entries": [{"kernel": "vector_add", "gpu": "X", "sizes": {"N": 1}, "constants": {"BLOCK": 256}}]}')
    assert tilewright.load(str(tmp_path / "k.py")).vector_add.variants[0]["constants"] == {"BLOCK": 1024}


def test_every_case_of_the_suites_names_a_kernel_of_its_file():
    modules = {}
    for suite in ("gemm", "attention", "grouped", "memory"):
        with open(os.path.join(ROOT, "bench", "suites", suite + ".json")) as f:
            cases = json.load(f)["cases"]
        for case in cases:
            constants = case.get("constants", {})
            key = (case["file"], json.dumps(constants, sort_keys=True))
            if key not in modules:
                modules[key] = tilewright.load(os.path.join(ROOT, case["file"]), **constants)
            if "kernel" in case:
                assert getattr(modules[key], case["kernel"]).name == case["kernel"], case["case"]
