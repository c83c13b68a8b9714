"""The benches' device headers: of the source tree, else beside the library of a dist that was copied alone."""
import importlib.util
import os
import pathlib
import shutil

import pytest

SOURCE = pathlib.Path(os.environ.get("TILEWRIGHT_SOURCE", pathlib.Path(__file__).resolve().parents[2]))


def harness_in(folder):
    (folder / "bench").mkdir(parents=True)
    shutil.copy(SOURCE / "bench/harness.py", folder / "bench/harness.py")
    spec = importlib.util.spec_from_file_location("harness_alone", folder / "bench/harness.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    monkeypatch.delenv("TILEWRIGHT_HEADERS", raising=False)
    monkeypatch.delenv("TILEWRIGHT_LIBRARY", raising=False)


def test_a_dist_alone_brings_them(tmp_path):
    harness = harness_in(tmp_path)
    dist = tmp_path / "dist/tilewright"
    (dist / "lib").mkdir(parents=True)
    (dist / "lib/libtilewright.so").write_text("")
    with pytest.raises(harness.TilewrightError, match="TILEWRIGHT_HEADERS"):
        harness.device_headers()
    (dist / "share/tilewright/cuda").mkdir(parents=True)
    (dist / "share/tilewright/cuda/tw_tile.cuh").write_text("")
    assert pathlib.Path(harness.device_headers()) == dist / "share/tilewright/cuda"


def test_the_variable_and_the_source_tree_come_first(tmp_path, monkeypatch):
    harness = harness_in(tmp_path)
    for folder in ("src/codegen/cuda", "named"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "tw_tile.cuh").write_text("")
    assert pathlib.Path(harness.device_headers()) == tmp_path / "src/codegen/cuda"
    monkeypatch.setenv("TILEWRIGHT_HEADERS", str(tmp_path / "named"))
    assert pathlib.Path(harness.device_headers()) == tmp_path / "named"
