"""The examples do what their first line says."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM", str(ROOT / "build" / "bin" / "tilewright"))


def check(path):
    return subprocess.run([PROGRAM, "check", str(path)], capture_output=True, text=True, timeout=120, cwd=ROOT)


def test_the_missing_barrier_is_a_confirmed_race():
    result = check("examples/missing_barrier.py")
    assert result.returncode == 1, result.stdout + result.stderr
    assert "violated[TW2001]" in result.stdout
    assert "confirmed on the emulator" in result.stdout


def test_with_the_barrier_it_is_proved(tmp_path):
    text = (ROOT / "examples" / "missing_barrier.py").read_text()
    mended = text.replace("    tw.store(tile, x)\n", "    tw.store(tile, x)\n    tw.sync()\n")
    assert mended != text
    path = tmp_path / "mended.py"
    path.write_text(mended)
    result = check(path)
    assert result.returncode == 0, result.stdout + result.stderr


PROVED = {
    "decode_attention.py": {"decode": "B=3,T=70"},
    "losses.py": {"mse": "M=7,N=300", "nll": "M=5,N=300", "cosine": "M=5,N=300"},
    "norms.py": {"group_norm": "B=2,G=3,N=300", "batch_norm": "B=3,N=2,K=300", "l2norm": "M=3,N=1100"},
    "scans.py": {"exclusive_cumsum": "M=3,N=300", "reverse_cumsum": "M=3,N=300"},
    "windows.py": {"conv1d": "B=2,D=130", "causal_conv": "B=2,T=130", "same_conv": "B=2,M=3,N=130", "conv2d": "B=2,K=3,M=3,N=130", "pool2d": "B=2,H=2,M=3,N=130"},
}


def test_every_example_is_listed():
    files = {p.name for p in (ROOT / "examples").glob("*.py")}
    assert files == {"missing_barrier.py", *PROVED}


@pytest.mark.parametrize("name", PROVED)
def test_an_example_is_proved_and_right_on_the_emulator(name):
    result = check(ROOT / "examples" / name)
    assert result.returncode == 0, result.stdout + result.stderr
    for kernel, sizes in PROVED[name].items():
        assert f"{kernel}: proved" in result.stdout
        run = subprocess.run([PROGRAM, "run", f"examples/{name}", "--kernel", kernel, "--set", sizes, "--schedules", "1"], capture_output=True, text=True, timeout=120, cwd=ROOT)
        assert run.returncode == 0, run.stdout + run.stderr
