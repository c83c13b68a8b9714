"""The examples do what their first line says."""
import os
import pathlib
import subprocess

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
