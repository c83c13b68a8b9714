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


def test_what_is_missing_is_named():
    with pytest.raises(graph.Unsupported, match="qr"):
        graph.trace(Strange(), [torch.randn(4, 4)])
