"""PyTorch modules to graphs, and from there to kernels on the emulator. Needs torch; nothing is computed by it."""
import json
import os
import pathlib
import subprocess
import sys

import pytest

import torch
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from tilewright import graph  # noqa: E402

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM", "tilewright")


class Network(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.GroupNorm(2, 8)
        self.head = torch.nn.Linear(8, 5)

    def forward(self, x):
        y = torch.nn.functional.gelu(self.norm(self.conv(x)))
        return torch.log_softmax(self.head(y.mean(dim=(2, 3))), dim=-1)


class Scan(torch.nn.Module):
    def forward(self, x):
        return torch.cumsum(x.flip(1), dim=1).flip(1)


class Strange(torch.nn.Module):
    def forward(self, x):
        return torch.linalg.qr(x)[0]


@pytest.mark.parametrize("module, shape", [(Network(), (2, 3, 6, 6)), (Scan(), (3, 40))])
def test_traced(module, shape, tmp_path):
    made, _, _ = graph.trace(module, [torch.randn(*shape)])
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(made))
    done = subprocess.run([PROGRAM, "generate", str(path), "--json", "--emulate"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr + done.stdout
    report = json.loads(done.stdout)
    assert report["proved"], report
    assert report["emulated"]["worst"] < 8e-3  # the convolution is in tf32


class Mixed(torch.nn.Module):
    """An operator in the middle that graphs do not have."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.ConvTranspose2d(3, 8, 3, stride=2)
        self.head = torch.nn.Linear(8, 5)

    def forward(self, x):
        y = torch.relu(self.conv(x))
        q = torch.linalg.qr(y[0, 0])[0].sum()
        return torch.softmax(self.head(y.mean((2, 3))), dim=1) * q


class Dropped(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = torch.nn.Dropout(0.25)

    def forward(self, x, scale):
        return self.drop(x) * scale


def needs_library():
    from tilewright import _library
    try:
        _library.library_path()
    except Exception:
        pytest.skip("libtilewright.so is not built")


def test_the_rest_stays_with_torch():
    needs_library()
    from tilewright import compiled
    torch.manual_seed(1)
    module, x = Mixed().eval(), torch.rand(2, 3, 4, 5)
    with torch.no_grad():
        fast = compiled.optimize(module, [x])
        assert fast.report["unsupported"] == ["linalg_qr"] and fast.report["proved"]
        assert (fast(x) - module(x)).abs().max() < 1e-3  # the convolution is in tf32
        with pytest.raises(graph.Unsupported, match="qr"):
            compiled.optimize(module, [x], strict=True)
        compiled.register()
        assert (torch.compile(module, backend="tilewright")(x) - module(x)).abs().max() < 1e-3
        with pytest.raises(Exception, match="qr"):
            torch.compile(Mixed(), backend="tilewright_strict")(x)


def test_dropout_and_numbers():
    needs_library()
    from tilewright import compiled
    x = torch.rand(64, 64) + 1
    fast = compiled.optimize(Dropped(), [x, 2.0])
    first, second = fast(x, 2.0), fast(x, 4.0)
    for y, scale in ((first, 2.0), (second, 4.0)):
        kept = y != 0
        assert torch.allclose(y[kept], (x * scale / 0.75)[kept], rtol=1e-6)
        # 4096 draws with probability 3/4: a deviation of 0.034 is five times the standard deviation.
        assert abs(kept.float().mean() - 0.75) < 0.034
    assert (first != 0).ne(second != 0).any()
    assert fast.report["proved"] and fast.report["composition"] == "proved"
    torch.manual_seed(3)  # the words of a call are drawn from torch's generator
    again = [fast(x, 2.0) for _ in range(2)]
    torch.manual_seed(3)
    assert torch.equal(fast(x, 2.0), again[0]) and not torch.equal(*again)
    calm = compiled.optimize(Dropped().eval(), [x, 2.0])
    assert torch.equal(calm(x, 2.0), x * 2)


class Called(torch.nn.Module):
    def __init__(self, function, *modules):
        super().__init__()
        self.function, self.parts = function, torch.nn.ModuleList(modules)

    def forward(self, *inputs):
        return self.function(*self.parts, *inputs)


F = torch.nn.functional
ASSEMBLED = {
    "in place": (Called(lambda a, b, x: torch.relu_(b(F.hardtanh_(a(x)))).mul_(2), torch.nn.Linear(7, 9), torch.nn.Linear(9, 3)), [(4, 7)]),
    "assigned parts": (Called(lambda x: assigned(x)), [(4, 8)]),
    "inception": (Called(lambda a, b, x: torch.cat([a(x), b(x), F.max_pool2d(x, 3, 1, 1)], 1), torch.nn.Conv2d(3, 4, 1), torch.nn.Conv2d(3, 5, 3, padding=1)), [(2, 3, 6, 5)]),
    "turned pairs": (Called(lambda x, c: torch.stack([x[..., ::2] * c - x[..., 1::2], x[..., ::2] + x[..., 1::2] * c], -1).flatten(-2)), [(2, 5, 8), (5, 4)]),
    "masked": (Called(lambda x: x.masked_fill(torch.tril(torch.ones(6, 6)) == 0, float("-inf")).softmax(-1)), [(2, 6, 6)]),
    "padded": (Called(lambda x: F.pad(F.pad(x, (1, 2, 0, 1), value=1.5), (2, 1), mode="reflect").flip(1).roll(2, 2)), [(2, 3, 4)]),
    "resized": (Called(lambda x: F.interpolate(F.interpolate(x, scale_factor=2), size=(5, 7), mode="bilinear", align_corners=True)), [(1, 2, 3, 4)]),
    "pooled": (Called(lambda x: F.adaptive_avg_pool2d(x, (3, 2)) + F.adaptive_max_pool2d(x, (3, 2)) + F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False)[..., :3, :2]), [(2, 3, 7, 5)]),
    "positions": (Called(lambda table, x: x + table(torch.arange(5)) * torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.nn.Embedding(9, 4)), [(3, 5, 4)]),
    "cell": (Called(lambda cell, x: cell(x), torch.nn.LSTMCell(5, 6)), [(3, 5)]),
    "rounded": (Called(lambda x: torch.round(x * 3) + torch.sign(x) + torch.div(x, 0.3, rounding_mode="trunc") + torch.rsub(x, 4.0, alpha=2)), [(5, 7)]),
    "in order": (Called(lambda x: (*x.topk(3, dim=1), *x.sort(0, descending=True), x.median(1)[0], torch.cummax(x, 1)[0])), [(5, 9)]),
    "stored": (Called(lambda x: (x.scatter(1, x.argsort(1)[:, :3], 2.0), torch.zeros(4, 9).index_add(0, x.argmax(1) % 4, x), x[x.argmin(0), torch.arange(-9, 0)], stored(x))), [(5, 9)]),
    "rotated": (Called(lambda x: torch.view_as_real(torch.view_as_complex(x) * torch.polar(torch.ones(4), torch.arange(4.0)))), [(3, 4, 2)]),
    "arcs": (Called(lambda x: (torch.atan2(x, x.flip(0)), torch.asin(x.tanh()), torch.acosh(x.abs() + 1), torch.nan_to_num(x.log()))), [(4, 6)]),
    "some rows": (Called(lambda x: F.cross_entropy(x, torch.where(x.argmax(1) > 2, -100, x.argmax(1)), weight=x[0].abs())), [(9, 5)]),
    "integers": (Called(lambda x: ((x * 1000).long().sum(1), (x * 1000).long().max(1)[1], (x > 0).long().cumsum(1))), [(3, 8)]),
    "spread": (Called(lambda x: (x.std(1), torch.var_mean(x, dim=0), x.norm(p=3, dim=1), (x > 1).any(1))), [(5, 9)]),
}


def stored(x):
    z = x.clone()
    z[x.argmax(0), torch.arange(9)] = -1.0
    return z


def assigned(x):
    z = torch.zeros_like(x)
    z[:, ::2] = x[:, 1::2]
    z[1] = 5
    return z


@pytest.mark.parametrize("name", ASSEMBLED)
def test_modules_give_what_torch_gives(name):
    needs_library()
    from torch.utils._pytree import tree_flatten
    from tilewright import compiled
    torch.manual_seed(5)
    module, shapes = ASSEMBLED[name]
    inputs = [torch.randn(*s) for s in shapes]
    with torch.no_grad():
        fast = compiled.optimize(module.eval(), [x.clone() for x in inputs], strict=True)
        made = fast(*inputs)
        expected = [v for v in tree_flatten(module(*inputs))[0]]
    made = [made] if isinstance(made, torch.Tensor) else made
    assert fast.report["proved"] and len(made) == len(expected)
    for a, e in zip(made, expected):
        assert a.shape == e.shape and a.dtype == e.dtype
        assert torch.allclose(a.double(), e.double(), rtol=1e-5, atol=3e-3 if name == "inception" else 1e-5)  # that convolution is in tf32


OPEN = {
    "rows": (torch.nn.Sequential(torch.nn.LayerNorm(8), torch.nn.Linear(8, 12), torch.nn.GELU()), lambda n: [torch.randn(n, 3, 8)], [{0: "N"}], 1),
    "attention": (Called(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)), lambda n: [torch.randn(2, 2, n, 8) for _ in range(3)], [{0: "B", 2: "T"}] * 3, 1),
    "two lengths": (Called(lambda x, y: (x @ y.t()).softmax(1)), lambda n: [torch.randn(n, 16), torch.randn(n + 3, 16)], [{0: "N"}, {0: "M"}], 1),
    "parity": (Called(lambda x: x * 2 if x.shape[0] % 2 else x + 1), lambda n: [torch.randn(n, 4)], [{0: "N"}], 0),
    "positions": (Called(lambda x: x + torch.arange(x.shape[1])), lambda n: [torch.randn(2, n)], [{1: "N"}], 0),
}


@pytest.mark.parametrize("name", OPEN)
def test_open_sizes(name):
    """Kernels are made once for all sizes, or for each size by itself, and the reason is told."""
    needs_library()
    from tilewright import compiled
    module, inputs, dims, sets = OPEN[name]
    with torch.no_grad():
        fast = compiled.optimize(module, inputs(6), dynamic_shapes=dims)
        assert fast.report["proved"] and bool(fast.report.get("fixed")) == (sets == 0)
        for n in (6, 2, 9, 33):
            given = inputs(n)
            assert torch.allclose(fast(*given), module(*given), rtol=1e-5, atol=1e-5)
        assert len(fast._made) == sets and len(fast._fixed) == (0 if sets else 4)


def test_larger_sizes_are_made_once_more():
    needs_library()
    from tilewright import compiled
    fast = compiled.optimize(Called(lambda x: x.softmax(1)), [torch.randn(3, 5)], dynamic_shapes=[{1: "N"}])
    for n, sets in ((200, 1), (256, 1), (300, 2), (1000, 2), (7, 2)):
        x = torch.randn(3, n)
        assert torch.allclose(fast(x), x.softmax(1), rtol=1e-5) and len(fast._made) == sets


def test_compile_of_sizes_that_vary():
    needs_library()
    from tilewright import compiled
    compiled.register()
    made, count = compiled.generate, []
    compiled.generate = lambda *a, **k: count.append(1) or made(*a, **k)
    try:
        module = torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.Softmax(-1))
        fast = torch.compile(module, backend="tilewright", dynamic=True)
        with torch.no_grad():
            for n in (6, 9, 4, 31):
                x = torch.randn(n, 3, 8)
                assert torch.allclose(fast(x), module(x), rtol=1e-5, atol=1e-6)
        assert len(count) == 1
    finally:
        compiled.generate = made


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.scale = torch.nn.LayerNorm(8), 0.3

    def forward(self, x):
        return torch.relu(self.norm(x)) * self.scale


def test_floats_that_become_inputs():
    """With dynamic=True torch.compile gives attributes that are floats to the graph as inputs: a set of kernels for each value."""
    needs_library()
    from tilewright import compiled
    compiled.register()
    module = Scaled().eval()
    fast = torch.compile(module, backend="tilewright_strict", dynamic=True)
    with torch.no_grad():
        for n, scale in ((6, 0.3), (9, 0.3), (4, -2.5), (5, 0.3)):
            module.scale, x = scale, torch.randn(n, 8)
            assert torch.allclose(fast(x), module(x), rtol=1e-5, atol=1e-6)


def test_masked_queries_and_running_statistics():
    needs_library()
    from tilewright import compiled
    q, mask = torch.randn(1, 1, 3, 8), torch.tensor([[True, False, True], [False] * 3, [True] * 3])
    attend = Called(lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m))
    assert torch.allclose(compiled.optimize(attend, [q, mask])(q, mask), attend(q, mask), atol=1e-5)
    norm = torch.nn.BatchNorm1d(5)
    with pytest.raises(graph.Unsupported, match="statistics"):
        graph.trace(Called(lambda m, x: (m(x), m.running_mean.clone()), norm).train(), [torch.randn(4, 5)])
    with pytest.raises(graph.Unsupported, match="multilabel"):
        graph.trace(Called(lambda x, t: F.multilabel_margin_loss(x, t)), [torch.randn(2, 4), torch.tensor([[3, 0, -1, 1], [1, -1, 0, 0]])])


@pytest.mark.parametrize("function, message", [
    (lambda x: torch.div(x, x + 3, rounding_mode="floor"), "div"),
    (lambda x: torch.round(x, decimals=2), "decimals"),
    (lambda x: x[x > 0], "depends on the values"),
    (lambda x: torch.mode(x, 1)[0], "mode"),
    (lambda x: torch.complex(x, x), "complex"),
    (lambda x: x.double(), "float64"),
    (lambda x: F.max_pool1d(x, 2, return_indices=True), "result 1 of"),
])
def test_nothing_is_dropped(function, message):
    with pytest.raises(graph.Unsupported, match=message):
        graph.trace(Called(function), [torch.randn(4, 6)])


def test_what_is_missing_is_named():
    with pytest.raises(graph.Unsupported, match="qr"):
        graph.trace(Strange(), [torch.randn(4, 4)])
