"""Operations that are launched again from what was written down (tilewright/_tables.py): torch's CPU tensors are said to be on a GPU, and a driver writes down what it is given."""
import os
import shutil
import subprocess
import sys
import textwrap

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON = os.environ.get("TILEWRIGHT_TORCH_PYTHON", sys.executable)
compiler = shutil.which("cc") or shutil.which("gcc")
pytestmark = [pytest.mark.skipif(not compiler or not os.environ.get("TILEWRIGHT_LIBRARY"), reason="no C compiler, or the library is not built"),
              pytest.mark.skipif(subprocess.run([PYTHON, "-c", "import torch; torch.Tensor.__dlpack_c_exchange_api__"], capture_output=True).returncode != 0,
                                 reason="torch with DLPack's exchange table is not installed")]

HEAD = f"""
import ctypes, os, sys, threading, warnings
sys.path.insert(0, {os.path.join(ROOT, "python")!r})
import torch
import tilewright
import tilewright.ops as ops
from tilewright import _dispatch, _module, _tables

warnings.simplefilter("ignore")

class Exchange(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint32 * 2), ("unused", ctypes.c_void_p * 4), ("read", ctypes.c_void_p), ("stream", ctypes.c_void_p)]

pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
exchange = Exchange.from_address(pointer(torch.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))
real_read = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(exchange.read)

@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)
def read(t, out):
    code = real_read(t, out)
    ctypes.c_int32.from_address(out + 8).value = 2  # CUDA
    return code

@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
def stream(kind, device, out):
    out[0] = 7
    return 0

exchange.read, exchange.stream = ctypes.cast(read, ctypes.c_void_p), ctypes.cast(stream, ctypes.c_void_p)
torch._C._cuda_getDevice = lambda: 0
torch._C._cuda_getCurrentRawStream = lambda device: 7
torch.cuda.get_device_capability = lambda device: (9, 0)
torch._C._dynamo.guards._empty_strided_cuda = torch._C._dynamo.guards._empty_strided_cpu
real_empty = torch.empty
torch.empty = lambda *a, device=None, **k: real_empty(*a, **k)
_tables._here = lambda t, torch: True
_dispatch.device_of = lambda x: 0
described = _module.describe
_module.describe = lambda out, name, value: (described(out, name, value)[0], 0)
log = os.environ["FAKE_DRIVER_LOG"]

def launches(function, *given, **named):
    '''(result, what the driver was given, how many calls went through Python)'''
    open(log, "w").close()
    before = len(through)
    made = function(*given, **named)
    return made, [line.split() for line in open(log)], len(through) - before

through = []
record = _tables.record
_tables.record = lambda *a: (through.append(1), record(*a))[1]

def places(tensors):
    return {{f"{{t.data_ptr():x}}": i for i, t in enumerate(tensors)}}

def named_addresses(lines, tensors):
    '''Launches with addresses of arguments and results replaced by their numbers, other words dropped that look like an address.'''
    where = places(tensors)
    return [[where.get(w, w if len(w) < 9 else "other") for w in line] for line in lines]

def check(name, *given, expect=True, **named):
    '''Twice through Python or from the table; the same launches with the arguments' own addresses.'''
    function = getattr(ops, name)
    tensors = lambda given, named: [v for v in (*given, *named.values()) if isinstance(v, torch.Tensor)]
    copies = lambda values: [torch.empty_strided(v.shape, v.stride(), dtype=v.dtype).copy_(v) if isinstance(v, torch.Tensor) else v for v in values]
    first, lines, python = launches(function, *given, **named)
    assert python == 1, (name, python)
    again, moved = copies(given), dict(zip(named, copies(named.values())))
    second, lines2, python = launches(function, *again, **moved)
    flat = lambda r: [] if r is None else list(r) if isinstance(r, tuple) else [r]
    assert [(t.shape, t.stride(), t.dtype) for t in flat(first)] == [(t.shape, t.stride(), t.dtype) for t in flat(second)], name
    assert named_addresses(lines, tensors(given, named) + flat(first)) == named_addresses(lines2, tensors(again, moved) + flat(second)), (name, lines, lines2)
    assert (python == 0) == expect, (name, "from the table" if python == 0 else "through Python")
    print(name, len(lines), "table" if python == 0 else "python")

bf = lambda *s: torch.randn(*s).bfloat16()
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    out = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-w", os.path.join(ROOT, "tests", "runtime", "fake_driver.c"), "-o", str(out)], check=True)
    return out


def run(driver, tmp_path, body, arguments=3):
    environment = dict(os.environ, TILEWRIGHT_DRIVER=str(driver), FAKE_DRIVER_LOG=str(tmp_path / "log"), FAKE_DRIVER_ARGUMENTS=str(arguments))
    done = subprocess.run([PYTHON, "-c", HEAD + textwrap.dedent(body)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
    if "libnvrtc" in done.stdout and "was not found" in done.stdout:
        pytest.skip("no NVRTC")
    assert done.returncode == 0, done.stdout
    return done.stdout.splitlines()


def test_operations_launch_the_same_from_the_table(driver, tmp_path):
    said = run(driver, tmp_path, """
        x, y = torch.randn(1024), bf(64, 256)
        check("relu", x)
        check("gelu", bf(7, 33, 5), approximate="tanh")
        check("softmax", bf(6, 300))
        check("softmax", bf(3, 4, 40), -1)
        check("sum", bf(33, 257), 1)
        check("rmsnorm", y, bf(256), 1e-5)
        check("layernorm", y, bf(256), bf(256))
        check("matmul", bf(128, 64), bf(64, 256))
        check("linear", bf(2, 64, 128), bf(256, 128))
        check("linear", bf(64, 128), bf(256, 128), bf(256), "relu")
        check("matmul", bf(64, 4096), bf(64, 4096).t())
        check("attention", bf(1, 4, 256, 64), bf(1, 2, 256, 64), bf(1, 2, 256, 64), causal=True)
        check("attention_with_lse", bf(1, 2, 128, 64), bf(1, 2, 128, 64), bf(1, 2, 128, 64))
        check("swiglu", bf(4, 64))
        check("transpose", bf(40, 56))
        check("rmsnorm_residual", y, bf(64, 256), bf(256))
        packed = bf(3, 1, 2, 128, 64)
        q, k, v = packed
        check("attention", q, k, v)
    """)
    assert all(line.endswith("table") for line in said) and len(said) == 17


def test_what_does_more_than_launch_is_not_written_down(driver, tmp_path):
    run(driver, tmp_path, """
        check("linear", bf(64, 128), bf(256, 128), bf(256), "sigmoid", bf(64, 256), expect=False)   # torch adds the residual
        check("softmax", bf(20, 300)[:, 1:200], expect=False)                                       # cut out: copied first
        check("matmul", torch.randn(8, 8), torch.randn(8, 8), expect=False)                         # torch's own
        check("matmul", bf(6, 2, 2), bf(6, 2, 2), expect=False)
    """)


def test_arguments_of_other_kinds_go_through_python(driver, tmp_path):
    run(driver, tmp_path, """
        x = bf(64, 64)
        _, _, python = launches(ops.matmul, x, x)           # which argument an address is of cannot be told
        _, _, python = launches(ops.matmul, x, x)
        assert python == 1
        a, b = bf(64, 64), bf(64, 64)
        _, _, python = launches(ops.matmul, a, b)
        assert python == 1
        _, lines, python = launches(ops.matmul, x, x)       # it can be told now
        assert python == 0 and lines[0][4:6] == [f"{x.data_ptr():x}"] * 2, lines
        _, _, python = launches(ops.matmul, a, bf(64, 128)[:, :64])
        assert python == 1
        shifted = bf(64 * 64 + 1)[1:].reshape(64, 64)
        assert launches(ops.matmul, shifted, b)[2] == 1
        with torch.inference_mode():
            launches(ops.matmul, a, b)
        a.requires_grad_()
        with torch.no_grad():
            assert launches(ops.matmul, a, b)[2] == 0
        through.clear()
        out = ops.matmul(a, b)                              # torch records it for its gradient
        assert out.requires_grad and not through
    """)


def test_kernels_and_threads(driver, tmp_path):
    run(driver, tmp_path, """
        add = tilewright.load("vector_add.py").vector_add
        x, y, z = (torch.randn(999) for _ in range(3))
        slow = []
        real = _module.Kernel._slow
        _module.Kernel._slow = lambda self, *g, **n: (slow.append(1), real(self, *g, **n))[1]
        add(x, y, z)
        add(x, y, z)
        assert len(slow) == 1
        add(x, y, C=z)
        assert len(slow) == 2
        u = torch.randn(999)
        _, lines, _ = launches(add, u, y, z)
        assert lines[0][4] == f"{u.data_ptr():x}"
        for wrong in ((x, y), (x, y, z, 1), (x, y, "z"), (x, y, torch.randn(5)), (x, y, None)):
            try:
                add(*wrong)
                raise SystemExit("taken")
            except tilewright.TilewrightError:
                pass
        faults = []
        def work(n):
            try:
                for i in range(200):
                    t = torch.randn(n)
                    assert ops.relu(t).shape == t.shape
                    add(t, t.clone(), torch.empty_like(t))
            except BaseException as e:
                faults.append(repr(e))
        threads = [threading.Thread(target=work, args=(64 + i % 3,)) for i in range(6)]
        [t.start() for t in threads], [t.join() for t in threads]
        assert not faults, faults
    """)
