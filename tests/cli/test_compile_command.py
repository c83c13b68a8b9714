"""`tilewright compile` and `tilewright doctor` as a user meets them: output and exit status."""
import json
import os
import subprocess

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")

GOOD = 'extern "C" __global__ void k(float* x) { x[threadIdx.x] *= FACTOR; }\n'
# Indexed at run time, so it cannot stay in registers.
LOCAL = ('extern "C" __global__ void k(float* x, int n) { float a[64]; for (int i = 0; i < 64; i++) a[i] = 0; '
         'for (int i = 0; i < n; i++) a[i * 7 & 63] += x[i]; for (int i = 0; i < 64; i++) x[i] = a[i]; }\n')


def tilewright(*words, **variables):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=300, env={**os.environ, **variables})


def has_nvrtc():
    report = json.loads(tilewright("doctor", "--json").stdout)
    return any(f["part"] == "NVRTC" and f["present"] for f in report["findings"])


needs_nvrtc = pytest.mark.skipif(not (PROGRAM and has_nvrtc()), reason="no NVRTC on this machine")


def test_doctor_names_every_part_and_how_to_get_what_is_missing():
    done = tilewright("doctor", "--json", TILEWRIGHT_HIDE="driver,nvrtc,cublaslt")
    assert done.returncode == 0
    findings = {f["part"]: f for f in json.loads(done.stdout)["findings"]}
    for part in ("CUDA driver", "NVRTC", "cuBLASLt"):
        assert not findings[part]["present"]
        assert findings[part]["fix"] and findings[part]["needed_for"]
    text = tilewright("doctor").stdout
    for part in findings:
        assert part in text


@pytest.mark.parametrize("words", [[], ["no-such-command"], ["compile"], ["compile", "--no-such-option", "x.cu"], ["doctor", "extra"]])
def test_bad_usage_is_status_2(words):
    done = tilewright(*words)
    assert done.returncode == 2
    assert done.stderr


def test_help_and_version_are_status_0():
    assert tilewright("--help").returncode == 0
    assert tilewright("compile", "--help").returncode == 0
    assert tilewright("--version").stdout.startswith("tilewright ")


def test_a_file_that_cannot_be_read_is_status_2_and_named(tmp_path):
    done = tilewright("compile", tmp_path / "absent.cu")
    assert done.returncode == 2
    assert "absent.cu" in done.stderr


def test_without_nvrtc_it_says_so(tmp_path):
    (tmp_path / "k.cu").write_text(GOOD)
    done = tilewright("compile", tmp_path / "k.cu", "-DFACTOR=2", TILEWRIGHT_HIDE="nvrtc")
    assert done.returncode == 2
    assert "setup.sh" in done.stderr


@needs_nvrtc
def test_every_variant_is_compiled(tmp_path):
    (tmp_path / "k.cu").write_text("// words\n// tw-variants: -DFACTOR=2\n// tw-variants: -DFACTOR=3\n" + GOOD)
    done = tilewright("compile", "--json", tmp_path / "k.cu")
    assert done.returncode == 0, done.stderr
    variants = json.loads(done.stdout)["variants"]
    assert [v["variant"] for v in variants] == ["-DFACTOR=2", "-DFACTOR=3"]
    for v in variants:
        assert v["ok"] and v["arch"] == "sm_90a" and v["kernels"][0]["name"] == "k" and v["kernels"][0]["registers"] > 0


@needs_nvrtc
def test_one_bad_variant_is_status_1_and_the_others_are_reported(tmp_path):
    (tmp_path / "k.cu").write_text("// tw-variants: -DFACTOR=2\n// tw-variants: -DFACTOR=nonsense\n" + GOOD)
    done = tilewright("compile", "--json", tmp_path / "k.cu")
    assert done.returncode == 1
    good, bad = json.loads(done.stdout)["variants"]
    assert good["ok"] and not bad["ok"] and "nonsense" in bad["error"]


@needs_nvrtc
def test_local_memory_is_a_fault_only_when_asked(tmp_path):
    (tmp_path / "k.cu").write_text(LOCAL)
    assert tilewright("compile", tmp_path / "k.cu").returncode == 0
    done = tilewright("compile", "--fail-on-spill", tmp_path / "k.cu")
    assert done.returncode == 1
    assert "local memory" in done.stdout


@needs_nvrtc
def test_the_architecture_comes_from_the_file_or_the_command_line(tmp_path):
    (tmp_path / "k.cu").write_text("// tw-arch: sm_80\n" + GOOD)
    arch = lambda *more: json.loads(tilewright("compile", "--json", "-DFACTOR=2", *more, tmp_path / "k.cu").stdout)["variants"][0]["arch"]
    assert arch() == "sm_80"
    assert arch("--arch", "sm_90a") == "sm_90a"
    assert tilewright("compile", "--arch", "hopper", "-DFACTOR=2", tmp_path / "k.cu").returncode == 2
