"""What `emit --to report`, `compile` and `doctor` say about the compiler and its machine code."""
import json
import os
import pathlib
import subprocess

import pytest

PROGRAM = os.environ.get("TILEWRIGHT_PROGRAM")
ROOT = pathlib.Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not PROGRAM, reason="the program is not built")


def tilewright(*words, **variables):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, timeout=300, env={**os.environ, **variables})


def found(part):
    findings = json.loads(tilewright("doctor", "--json").stdout)["findings"]
    return next(f for f in findings if f["part"] == part)


def needs(*parts):
    return pytest.mark.skipif(not (PROGRAM and all(found(p)["present"] for p in parts)), reason="not on this machine: " + ", ".join(parts))


ATTENTION = ["emit", ROOT / "kernels/attention_sm90.py", "--kernel", "attention", "--set", "D=64,BN=64", "--to", "report"]


@needs("NVRTC")
def test_doctor_says_the_version_and_what_an_old_one_means():
    nvrtc = found("NVRTC")
    major, minor = map(int, nvrtc["detail"].split(",")[0].split("."))
    assert ("13.3" in nvrtc["fix"]) == ((major, minor) < (13, 3))


@needs("NVRTC", "nvdisasm")
def test_the_report_says_that_registers_in_flight_are_left_alone():
    done = tilewright(*ATTENTION)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("with register operands, none overwritten in flight") == 2
    kernels = json.loads(tilewright(*ATTENTION, "--json").stdout)["kernels"]
    assert all("none overwritten in flight" in k["report"]["machine_code"] for k in kernels)


@needs("NVRTC")
def test_without_a_disassembler_it_says_so_and_an_old_compiler_is_refused(tmp_path):
    done = tilewright(*ATTENTION, TILEWRIGHT_HIDE="nvdisasm,cuobjdump", TILEWRIGHT_CACHE=str(tmp_path))
    version = tuple(map(int, found("NVRTC")["detail"].split(",")[0].split(".")))
    if version >= (13, 3):
        assert done.returncode == 0 and "machine code: not checked: " in done.stdout
    else:
        assert done.returncode == 2 and "may overwrite registers" in done.stderr and "13.4" in done.stderr


OLD = [p for p in ("/usr/local/cuda-13.0/lib64/libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.13") if os.path.exists(p)]


@pytest.mark.skipif(not OLD, reason="no older NVRTC on this machine")
def test_an_older_compiler_is_taken_once_its_code_was_read_and_not_before(tmp_path):
    version = json.loads(tilewright("doctor", "--json", TILEWRIGHT_NVRTC=OLD[0]).stdout)
    detail = next(f for f in version["findings"] if f["part"] == "NVRTC")["detail"]
    if tuple(map(int, detail.split(",")[0].split("."))) >= (13, 3):
        pytest.skip("it is not older")
    blind = tilewright(*ATTENTION, TILEWRIGHT_NVRTC=OLD[0], TILEWRIGHT_HIDE="nvdisasm,cuobjdump", TILEWRIGHT_CACHE=str(tmp_path))
    assert blind.returncode == 2 and "may overwrite registers" in blind.stderr and "scripts/setup.sh" in blind.stderr
    if found("nvdisasm")["present"]:
        read = tilewright(*ATTENTION, TILEWRIGHT_NVRTC=OLD[0], TILEWRIGHT_CACHE=str(tmp_path))
        assert "none overwritten in flight" in read.stdout or "HAZARD" in read.stderr
