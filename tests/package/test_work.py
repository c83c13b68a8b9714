"""Operation counts (runtime/work_count.h): what rooflines and predictions stand on."""
import os
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))

import ctypes  # noqa: E402
import json  # noqa: E402

import tilewright  # noqa: E402
from tilewright._library import Tensor, check, library  # noqa: E402


def work(file, kernel, *described, scalars=(), **constants):
    """Of a call with tensors of these types and shapes; nothing is allocated."""
    module = tilewright.load(os.path.join(ROOT, "kernels", file), **constants)
    made = (Tensor * len(described))()
    for number, (t, (dtype, dims)) in enumerate(zip(made, described)):
        t.address, t.dtype, t.rank, step = (number + 1) << 40, dtype.encode(), len(dims), 1
        t.dims[:len(dims)] = dims
        for d in reversed(range(len(dims))):
            t.strides[d] = step
            step *= dims[d]
    numbers, choice = (ctypes.c_double * max(1, len(scalars)))(*scalars), ctypes.c_char_p()
    check(library().tw_module_choose(module._handle, kernel.encode(), made, len(described), numbers, len(scalars), ctypes.byref(choice)))
    return json.loads(choice.value.decode())["work"]["operations"]


def test_a_product_is_two_operations_a_step():
    assert work("gemm_sm90.py", "gemm", ("bf16", [512, 256]), ("bf16", [1024, 256]), ("bf16", [512, 1024])) == 2 * 512 * 1024 * 256


@pytest.mark.parametrize("kernel", ["gemm_bias_gelu", "gemm_bias_silu", "gemm_bias_relu"])
def test_a_sum_inside_an_activation_is_counted_once(kernel):
    m, n, k = 512, 1024, 2048
    counted = work("gemm_fused_sm90.py", kernel, ("bf16", [m, k]), ("bf16", [n, k]), ("bf16", [n]), ("bf16", [m, n]))
    assert 2 * m * n * k < counted < 2 * m * n * k + 20 * m * n


@pytest.mark.parametrize("causal", [False, True])
def test_attention_makes_its_scores_once(causal):
    b, h, s, d = 2, 4, 512, 64
    q = ("bf16", [b, h, s, d])
    counted = work("attention_sm90.py", "attention_causal" if causal else "attention", q, q, q, q, ("f32", [b, h, s]), scalars=(0.18,), D=64)
    products = 4 * b * h * s * s * d
    if causal:  # the second product is over the half that is seen; scores are stated for all pairs
        assert 0.5 * products < counted < 0.9 * products
    else:
        assert products < counted < 1.1 * products


def test_a_softmax_is_a_few_operations_an_element():
    assert 3 <= work("softmax.py", "softmax", ("f32", [128, 1000]), ("f32", [128, 1000])) / 128000 <= 8
