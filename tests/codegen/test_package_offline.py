"""The Python package without a GPU: modules load, sources print, refusals speak of the argument."""
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
