"""libtilewright.so through bench/harness.py, on any machine: what works without a GPU works, what does not says why."""
import ctypes
import json
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "bench"))
import harness as tw  # noqa: E402

NVRTC = next(f for f in tw.machine()["findings"] if f["part"] == "NVRTC")
needs_nvrtc = pytest.mark.skipif(not NVRTC["present"], reason="no NVRTC: " + NVRTC["detail"])
SCALE = 'extern "C" __global__ void scale(float* x) { x[threadIdx.x] *= FACTOR; }'


@needs_nvrtc
def test_compile_reports_and_caches(tmp_path, monkeypatch):
    monkeypatch.setenv("TILEWRIGHT_CACHE", str(tmp_path))
    first = tw.compile(source=SCALE, entry="scale", defines={"FACTOR": 3})
    assert first.registers > 0 and first.spill_bytes == 0 and first.local_bytes == 0 and not first.from_cache
    second = tw.compile(source=SCALE, defines={"FACTOR": 3})
    assert second.from_cache and second.entry == "scale" and second.cubin() == first.cubin()


@needs_nvrtc
def test_compile_many_gives_errors_as_values():
    kernels = tw.compile_many([dict(source=SCALE, entry="scale", defines={"FACTOR": i}) for i in range(6)] +
                              [dict(source="nonsense", entry="k"), dict(source=SCALE, entry="other", defines={"FACTOR": 1})], workers=4)
    assert [k.error is None for k in kernels] == [True] * 6 + [False] * 2
    assert "nonsense" in kernels[6].error
    assert "scale" in kernels[7].error, "the entries that exist are named"
    with pytest.raises(tw.TilewrightError):
        tw.compile(source="nonsense", entry="k")


def test_bad_requests_are_errors_not_crashes():
    lib = tw.library()
    image = ctypes.c_void_p()
    for text in (b"", b"{", b"[]", b'{"source": 5}', b'{"defines": 3, "source": ""}', b"{}", b'{"path": "/no/such/file.cu"}'):
        assert lib.tw_compile(text, ctypes.byref(image)) == 1, text
        assert lib.tw_last_error()
        assert not image.value
    assert lib.tw_compile(None, ctypes.byref(image)) == 1
    assert lib.tw_kernel_launch(None, None, None) == 1
    assert lib.tw_kernel_load(None, b"k", ctypes.byref(image)) == 1
    assert lib.tw_gemm_run(None, 0, 0, 0, None) == 1
    assert json.loads(lib.tw_image_report(None)) == {}
    for free in (lib.tw_image_free, lib.tw_kernel_free, lib.tw_gemm_free):
        free(None)


def test_a_wrong_tensor_map_is_refused_without_a_gpu():
    with pytest.raises(tw.TilewrightError, match="1554 bytes; it must be a multiple of 16"):
        tw.tensor_map(0x1000, dtype="bf16", dims=[777, 64], strides=[1554], box=[64, 64], swizzle=128)
    with pytest.raises(tw.TilewrightError, match="fill"):
        tw.tensor_map(0x1000, dtype="bf16", dims=[64, 64], strides=[128], box=[64, 64], fill="one")


def test_bootstrap_interval_contains_the_median_and_shrinks():
    import random
    generator = random.Random(7)
    few = [generator.gauss(10, 1) for _ in range(10)]
    many = [generator.gauss(10, 1) for _ in range(1000)]
    (a, b), (c, d) = tw.bootstrap_interval(few), tw.bootstrap_interval(many)
    assert a <= sorted(few)[5] and sorted(few)[4] <= b
    assert c < 10.1 and d > 9.9 and d - c < b - a
