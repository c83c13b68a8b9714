"""Dropout by a counter: the mask follows from seed, offset and place, the gradient makes it again; and graphs that draw their own numbers."""
import json
import os
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "python"))
np = pytest.importorskip("numpy")

import tilewright  # noqa: E402
import tilewright.ops as ops  # noqa: E402

MASK = 0xFFFFFFFF


def philox(key, counter):
    """Philox4x32-10 in whole numbers; the vectors below are those that Random123 publishes."""
    (k0, k1), (c0, c1, c2, c3) = key, counter
    for _ in range(10):
        a, b = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = b >> 32 ^ c1 ^ k0, b & MASK, a >> 32 ^ c3 ^ k1, a & MASK
        k0, k1 = k0 + 0x9E3779B9 & MASK, k1 + 0xBB67AE85 & MASK
    return c0, c1, c2, c3


def uniform(count, seed, offset, stream=0):
    drawn = [w for n in range((count + 3) // 4) for w in philox((seed & MASK, seed >> 32 & MASK), (n, stream, offset & MASK, offset >> 32 & MASK))]
    return np.array([w >> 8 for w in drawn[:count]], dtype=np.float64) * 2.0**-24


def test_the_reference_is_philox():
    assert philox((0, 0), (0, 0, 0, 0)) == (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    assert philox((0xA4093822, 0x299F31D0), (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344)) == (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)


@pytest.mark.parametrize("seed, offset", [(0, 0), (1, 2), (0x123456789ABCDEF0, 0xFEDCBA9876543210), (-1, 1 << 40)])
def test_the_mask_is_that_of_the_counter(seed, offset):
    x = np.arange(1, 1 + 3 * 171, dtype=np.float32).reshape(3, 171)
    kept = uniform(x.size, seed, offset).reshape(x.shape) >= np.float32(0.3)
    np.testing.assert_allclose(ops.dropout(x, 0.3, seed=seed, offset=offset, strict=True), np.where(kept, x / 0.7, 0), rtol=1e-6)
    residual = np.ones_like(x)
    np.testing.assert_allclose(ops.dropout(x, 0.3, residual, seed=seed, offset=offset, scale=2.0, strict=True), 1 + np.where(kept, 2 * x, 0), rtol=1e-6)


def test_seeds_and_offsets_give_other_masks():
    x = np.ones(1024, dtype=np.float32)
    masks = [ops.dropout(x, 0.5, seed=s, offset=o, strict=True) != 0 for s, o in ((1, 0), (1, 1), (2, 0), (1 << 32, 0), (1, 1 << 32))]
    for i, a in enumerate(masks):
        assert abs(a.mean() - 0.5) < 0.08  # five standard deviations of 1024 draws
        for b in masks[:i]:
            assert 0.42 < (a == b).mean() < 0.58
    assert (ops.dropout(x, 0.0, seed=1, strict=True) == 1).all() and (ops.dropout(x, 1.0, seed=1, strict=True) == 0).all()
    with pytest.raises(tilewright.TilewrightError, match="probability"):
        ops.dropout(x, 1.5, seed=1)


def test_gradients_and_shapes():
    torch = pytest.importorskip("torch")
    from tilewright._random import uniform as drawn, words_of
    seed, offset = 0x123456789ABCDEF0, 77
    got = drawn((5, 40), (*words_of(seed), *words_of(offset)))
    np.testing.assert_array_equal(got.numpy().reshape(-1), uniform(200, seed, offset))
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        x, r = torch.randn(5, 40, dtype=dtype, requires_grad=True), torch.randn(5, 40, dtype=dtype, requires_grad=True)
        grad = torch.randn(5, 40, dtype=dtype)
        y = ops.dropout(x, 0.25, r, seed=seed, offset=offset, strict=True)
        y.backward(grad)
        kept = got >= 0.25
        torch.testing.assert_close(y.detach(), (r.detach().float() + torch.where(kept, x.detach().float() / 0.75, 0)).to(dtype))
        torch.testing.assert_close(x.grad, torch.where(kept, grad.float() / 0.75, 0).to(dtype))
        torch.testing.assert_close(r.grad, grad)
    with torch._subclasses.fake_tensor.FakeTensorMode():
        fake = torch.ops.tilewright.dropout(torch.empty(7, 9, dtype=torch.bfloat16), 0.1, seed=1)
        assert fake.shape == (7, 9) and fake.dtype == torch.bfloat16
    wide = x.detach().double()
    with pytest.warns(ops.FallbackWarning, match="f64"):  # left to torch, with our numbers
        torch.testing.assert_close(ops.dropout(wide, 0.25, seed=seed, offset=offset), torch.where(kept, wide / 0.75, 0))


PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")


@pytest.mark.skipif(not PROGRAM, reason="the program is not built")
def test_the_mask_of_a_graph(tmp_path):
    graph = {"format": "tilewright-graph", "version": 1, "name": "drawn", "outputs": ["u"],
             "inputs": [{"name": "w", "shape": [4], "dtype": "i32", "random": "words"}], "parameters": [],
             "nodes": [{"name": "u", "op": "uniform", "inputs": ["w"], "shape": [6, 7], "dtype": "f32", "attributes": {"stream": 3}}]}
    (tmp_path / "graph.json").write_text(json.dumps(graph))
    done = subprocess.run([PROGRAM, "generate", str(tmp_path / "graph.json"), "-o", str(tmp_path / "out"), "--json"], capture_output=True, text=True, timeout=120)
    report = json.loads(done.stdout)
    assert report["proved"] and report["composition"] == "proved", done.stderr
    plan = json.loads((tmp_path / "out" / "plan.json").read_text())
    assert plan["inputs"][0]["random"] == "words"
    kernel = tilewright.loads((tmp_path / "out" / "kernels.py").read_text(), name="drawn.py").kernels[plan["launches"][0]["kernel"]]
    out = np.zeros(42, dtype=np.float32)
    kernel(np.array([11, -12, 13, -2**31], dtype=np.int32), out)
    np.testing.assert_array_equal(out, uniform(42, 11 | (-12 & MASK) << 32, 13 | 2**31 << 32, 3))
