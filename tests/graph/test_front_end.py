"""PyTorch modules to graphs (front_end_cases.py), where torch is installed."""
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
try:
    import torch  # noqa: F401
except ImportError:

    def test_modules_become_graphs():
        pytest.skip("torch is not installed")

else:
    from front_end_cases import *  # noqa: F401,F403
