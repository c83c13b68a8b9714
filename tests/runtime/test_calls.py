"""Launches by signature (runtime/call.h) over a driver that only writes down what it is given: addresses, descriptors, buffers, refusals."""
import os
import shutil
import subprocess
import sys
import textwrap

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
compiler = shutil.which("cc") or shutil.which("gcc")
pytestmark = pytest.mark.skipif(not compiler or not os.environ.get("TILEWRIGHT_LIBRARY"), reason="no C compiler, or the library is not built")

HEAD = f"""
import ctypes, json, os, struct, sys
sys.path.insert(0, {os.path.join(ROOT, "python")!r})
import tilewright
from tilewright._library import Tensor, check, library

def tensors(*described):
    made = (Tensor * len(described))()
    for t, (address, dtype, dims) in zip(made, described):
        t.address, t.dtype, t.rank = address, dtype.encode(), len(dims)
        strides, step = [], 1
        for d in reversed(dims):
            strides.insert(0, step)
            step *= d
        t.dims[:len(dims)], t.strides[:len(dims)] = dims, strides
    return made

def create(kernel, *described, scalars=()):
    handle = ctypes.c_void_p()
    numbers = (ctypes.c_double * max(1, len(scalars)))(*scalars)
    check(library().tw_call_create(kernel._module._handle, kernel.name.encode(), tensors(*described), len(described), numbers, len(scalars), ctypes.byref(handle)))
    return handle

def launch(call, addresses, workspace=0, stream=0, scalars=(0.0,)):
    check(library().tw_call_launch(call, struct.pack(f"{{len(addresses)}}Q", *addresses), struct.pack(f"{{len(scalars)}}d", *scalars), workspace, stream))
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    out = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-w", os.path.join(ROOT, "tests", "runtime", "fake_driver.c"), "-o", str(out)], check=True)
    return out


def run(driver, tmp_path, body, arguments=0):
    log = tmp_path / "log"
    environment = dict(os.environ, TILEWRIGHT_DRIVER=str(driver), FAKE_DRIVER_LOG=str(log), FAKE_DRIVER_ARGUMENTS=str(arguments))
    done = subprocess.run([sys.executable, "-c", HEAD + textwrap.dedent(body)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    if "libnvrtc" in done.stdout and "was not found" in done.stdout:
        pytest.skip("no NVRTC")
    assert done.returncode == 0, done.stdout
    lines = log.read_text().splitlines() if log.exists() else []
    return done.stdout, [line.split() for line in lines]


def test_addresses_of_each_launch_are_its_own(driver, tmp_path):
    _, log = run(driver, tmp_path, """
        add = tilewright.load("vector_add.py").vector_add
        call = create(add, (0x10000, "f32", [5000]), (0x20000, "f32", [5000]), (0x30000, "f32", [5000]))
        launch(call, [0x10000, 0x20000, 0x30000])
        launch(call, [0x40000, 0x50000, 0x60000], stream=9)
        launch(call, [0x10000, 0x20000, 0x30000])
    """, arguments=3)
    assert log == [["launch", "5", "1", "0", "10000", "20000", "30000"], ["launch", "5", "1", "9", "40000", "50000", "60000"], ["launch", "5", "1", "0", "10000", "20000", "30000"]]


def test_descriptors_follow_the_addresses(driver, tmp_path):
    _, log = run(driver, tmp_path, """
        gemm = tilewright.load("gemm_sm90.py", T="bf16").gemm
        shapes = [(0x100000, "bf16", [256, 128]), (0x200000, "bf16", [512, 128]), (0x300000, "bf16", [256, 512])]
        call = create(gemm, *shapes)
        for base in (0x100000, 0x1100000, 0x100000):
            launch(call, [base, base + 0x100000, base + 0x200000])
    """, arguments=3)
    words = [sorted(line[4:]) for line in log]
    assert words[0] == words[2] and words[0] == ["100000", "200000", "300000"] and words[1] == ["1100000", "1200000", "1300000"]


def test_a_program_takes_the_callers_workspace_or_its_own(driver, tmp_path):
    said, log = run(driver, tmp_path, """
        split = tilewright.load("gemm_split_sm90.py").gemm_split
        call = create(split, (0x100000, "bf16", [64, 4096]), (0x200000, "bf16", [64, 4096]), (0x300000, "bf16", [64, 64]))
        print(library().tw_call_workspace_bytes(call))
        launch(call, [0x100000, 0x200000, 0x300000], workspace=0x900010)
        launch(call, [0x100000, 0x200000, 0x300000], stream=7)
    """, arguments=2)
    assert int(said.split()[-1]) > 0
    kinds = [line[0] for line in log]
    assert kinds == ["launch", "launch", "allocate", "launch", "launch", "free"]  # nothing waits: this may be captured
    given = [w for line in log[:2] for w in line[4:]]
    assert "900400" in given, given  # the next multiple of 1024
    block = int(log[2][1], 16)
    own = [int(w, 16) for line in log[3:5] for w in line[4:]]
    assert -(-block // 1024) * 1024 in own


def test_what_depends_on_addresses_is_refused(driver, tmp_path):
    said, log = run(driver, tmp_path, """
        add = tilewright.load("vector_add.py").vector_add
        call = create(add, (0x10000, "f32", [5000]), (0x20000, "f32", [5000]), (0x30000, "f32", [5000]))
        for addresses in ([0x10004, 0x20000, 0x30000], [0x10000, 0x20000, 0x20040], [0x10000, 0, 0x30000]):
            try:
                launch(call, addresses)
                print("launched")
            except tilewright.TilewrightError as error:
                print(str(error).splitlines()[0])
        norm = tilewright.load("rmsnorm.py").rmsnorm
        one = create(norm, (0x10000, "bf16", [4, 64]), (0x20000, "bf16", [64]), (0x30000, "bf16", [4, 64]), scalars=(1e-6,))
        launch(one, [0x10000, 0x20000, 0x30000], scalars=(1e-5,))
    """)
    assert said.splitlines() == ["A starts at an address that is not a multiple of 16", "B and C share memory, and C is written", "B has no memory"] or \
        said.splitlines() == ["A starts at an address that is not a multiple of 16", "C and B share memory, and C is written", "B has no memory"], said
    assert len(log) == 1


def test_outputs_that_start_at_zero_are_zeroed_where_they_are(driver, tmp_path):
    _, log = run(driver, tmp_path, """
        column = tilewright.load("reductions.py").column_sum_atomic
        call = create(column, (0x100000, "f32", [300, 64]), (0x200000, "f32", [64]))
        launch(call, [0x100000, 0x200000])
        launch(call, [0x500000, 0x600000], stream=3)
    """)
    zeroed = [line for line in log if line[0] == "zero"]
    assert zeroed == [["zero", "200000", "100", "0"], ["zero", "600000", "100", "3"]]
