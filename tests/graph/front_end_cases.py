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
    calm = compiled.optimize(Dropped().eval(), [x, 2.0])
    assert torch.equal(calm(x, 2.0), x * 2)


def test_what_is_missing_is_named():
    with pytest.raises(graph.Unsupported, match="qr"):
        graph.trace(Strange(), [torch.randn(4, 4)])
