"""Launches from Python's tables (runtime/python_calls.cpp) over a driver that only writes down what it is given, with tensors that are only an address, a shape and strides."""
import pytest

import test_calls
from test_calls import driver, pytestmark  # noqa: F401

FAKES = '''
from tilewright import _tables

class DlTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32), ("rank", ctypes.c_int32), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)), ("offset", ctypes.c_uint64)]

class Fake:
    """A tensor: code 2 is float, 4 bfloat."""
    requires_grad = False

    def __init__(self, address, shape, code=2, bits=32, device=0, kind=2):
        self.address, self.code, self.bits, self.device, self.kind, self.rank = address, code, bits, device, kind, len(shape)
        strides, step = [], 1
        for d in reversed(shape):
            strides.insert(0, step)
            step *= d
        self.shape, self.strides = (ctypes.c_int64 * 8)(*shape), (ctypes.c_int64 * 8)(*strides)

@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(DlTensor))
def read(t, out):
    o = out[0]
    o.data, o.device_type, o.device, o.rank, o.code, o.bits, o.lanes, o.offset = t.address, t.kind, t.device, t.rank, t.code, t.bits, 1, 0
    o.shape, o.strides = ctypes.cast(t.shape, ctypes.POINTER(ctypes.c_int64)), ctypes.cast(t.strides, ctypes.POINTER(ctypes.c_int64))
    return 0

stream_now = [7]

@ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
def current_stream(kind, device, out):
    out[0] = stream_now[0]
    return 0

class Exchange(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("unused", ctypes.c_void_p * 4), ("read", ctypes.c_void_p), ("stream", ctypes.c_void_p)]

exchange = Exchange(1, 3, (ctypes.c_void_p * 4)(), ctypes.cast(read, ctypes.c_void_p), ctypes.cast(current_stream, ctypes.c_void_p))
new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
name = b"dlpack_exchange_api"
Fake.__dlpack_c_exchange_api__ = new(ctypes.addressof(exchange), name, None)

next_address = [0x9000000]
grad = [False]

def empty(sizes, strides, dtype):
    next_address[0] += 0x1000000
    return Fake(next_address[0], sizes)

f = _tables.functions()
assert f["setup"]((Fake,), empty, lambda: grad[0], check) is True
add = tilewright.load("vector_add.py").vector_add
call = create(add, (0x10000, "f32", [5000]), (0x20000, "f32", [5000]), (0x30000, "f32", [5000])).value
three = ((0, 0), (1, 0), (2, 0))
vector = lambda address, n=5000, **more: Fake(address, [n], **more)
'''


def run(driver, tmp_path, body, arguments=3):
    """(what was said, launches as [stream, arguments...])"""
    said, log = test_calls.run(driver, tmp_path, FAKES + test_calls.textwrap.dedent(body), arguments)
    return said.splitlines(), [line[3:] for line in log if line[0] == "launch"]


def test_a_signature_that_is_known_is_launched_with_the_addresses_of_the_call(driver, tmp_path):
    said, launches = run(driver, tmp_path, """
        t = f["table"](True)
        a, b, c = vector(0x10000), vector(0x20000), vector(0x30000)
        print(f["run"](t, (a, b, c), None))
        print(f["remember"](t, (a, b, c), None, (), ((call, three, None, ()),), None))
        print(f["run"](t, (a, b, c), None))
        stream_now[0] = 9
        print(f["run"](t, (vector(0x40000), vector(0x50000), vector(0x60000)), {}))
    """)
    assert said == ["NotImplemented", "True", "None", "None"]
    assert launches == [["7", "10000", "20000", "30000"], ["9", "40000", "50000", "60000"]]


def test_what_differs_in_any_way_is_not_the_signature(driver, tmp_path):
    said, launches = run(driver, tmp_path, """
        t = f["table"](True)
        a, b, c = vector(0x10000), vector(0x20000), vector(0x30000)
        f["remember"](t, (a, b, c), None, (), ((call, three, None, ()),), None)
        strided = vector(0x20000)
        strided.strides[0] = 2
        class Other(Fake):
            pass
        for other in ((a, b), (a, b, c, c), (a, b, c, 1.0), (a, vector(0x20000, 5001), c), (a, vector(0x20000, code=0), c), (a, vector(0x20000, bits=16), c), (a, vector(0x20000, device=1), c),
                      (a, vector(0x20000, kind=1), c), (a, strided, c), (a, None, c), (a, "b", c), (a, Other(0x20000, [5000]), c), ()):
            assert f["run"](t, other, None) is NotImplemented, other
        assert f["run"](t, (a, b), {"C": c}) is NotImplemented
        f["recording"](1)
        assert f["run"](t, (a, b, c), None) is NotImplemented
        f["recording"](-1)
        assert f["run"](t, (a, b, c), None) is None
    """)
    assert len(launches) == 1


def test_an_operation_allocates_its_outputs_and_knows_its_other_arguments(driver, tmp_path):
    said, launches = run(driver, tmp_path, """
        t = f["table"](False)
        a, b = vector(0x10000), vector(0x20000)
        out = ((5000,), (1,), None)
        assert f["remember"](t, (a, b, 1.0), {"strict": False, "mode": "x"}, (out, out), ((call, three, None, ()), (call, ((2, 0), (0, 64), (3, 128)), None, ())), (1, 0))
        for given, named in (((a, b, 1.0), {"strict": False, "mode": "y"}), ((a, b, 1), {"strict": False, "mode": "x"}), ((a, b, True), {"strict": False, "mode": "x"}), ((a, b, 1.5), {"strict": False, "mode": "x"}),
                             ((a, b, 1.0), {"strict": False}), ((a, b, 1.0), {"strict": 0, "mode": "x"}), ((a, b, 1.0), {"strict": False, "mood": "x"}), ((a, b, [1.0]), {"strict": False, "mode": "x"}),
                             ((vector(0x10004), b, 1.0), {"strict": False, "mode": "x"})):
            assert f["run"](t, given, named) is NotImplemented, (given, named)
        assert f["remember"](t, (a, b, 0.0), {}, (out,), ((call, three, None, ()),), 0) and f["run"](t, (a, b, -0.0), {}) is NotImplemented
        second, first = f["run"](t, (a, b, 1.0), {"strict": False, "mode": "".join(["x"])})
        print(hex(first.address), hex(second.address), sys.getrefcount(first))
        grad[0] = True
        assert f["run"](t, (a, b, 1.0), {"strict": False, "mode": "x"})
        b.requires_grad = True
        assert f["run"](t, (a, b, 1.0), {"strict": False, "mode": "x"}) is NotImplemented
    """)
    assert said == ["0xa000000 0xb000000 2"]
    assert launches[:2] == [["7", "10000", "20000", "a000000"], ["7", "a000000", "10040", "b000080"]] and len(launches) == 4


def test_numbers_flow_to_a_kernel_and_its_buffers_are_allocated(driver, tmp_path):
    said, launches = run(driver, tmp_path, """
        norm = tilewright.load("rmsnorm.py").rmsnorm
        one = create(norm, (0x10000, "bf16", [4, 64]), (0x20000, "bf16", [64]), (0x30000, "bf16", [4, 64]), scalars=(1e-6,)).value
        t = f["table"](True)
        x, w, y = Fake(0x10000, [4, 64], 4, 16), Fake(0x20000, [64], 4, 16), Fake(0x30000, [4, 64], 4, 16)
        f["remember"](t, (x, w, y, 1e-6), None, (), ((one, three, None, ()),), None)
        assert f["run"](t, (x, w, y, 1e-5), None) is None and f["run"](t, (x, w, y, 2), None) is None
        try:
            f["run"](t, (x, w, x, 1.0), None)
        except tilewright.TilewrightError as error:
            print(str(error).splitlines()[0])
        assert f["run"](t, (x, w, y, 10 ** 400), None) is NotImplemented
        split = tilewright.load("gemm_split_sm90.py").gemm_split
        two = create(split, (0x100000, "bf16", [64, 4096]), (0x200000, "bf16", [64, 4096]), (0x300000, "bf16", [64, 64])).value
        a, b, c = Fake(0x100000, [64, 4096], 4, 16), Fake(0x200000, [64, 4096], 4, 16), Fake(0x300000, [64, 64], 4, 16)
        u = f["table"](True)
        f["remember"](u, (a, b, c), None, (((library().tw_call_workspace_bytes(two),), (1,), None),), ((two, three, 3, ()),), None)
        assert f["run"](u, (a, b, c), None) is None
    """, arguments=2)
    assert len(said) == 1 and "share memory" in said[0]
    assert len(launches) == 4 and "a000000" in launches[2] + launches[3]


def test_a_method_takes_its_table_and_then_its_slow_way(driver, tmp_path):
    said, launches = run(driver, tmp_path, """
        class Thing:
            def _slow(self, *given, stream=None, **named):
                return len(given), stream, named
        Thing.__call__ = f["method"](Thing)
        thing = Thing()
        thing._table = f["table"](True)
        a, b, c = vector(0x10000), vector(0x20000), vector(0x30000)
        print(thing(a, b, c), thing(), thing(a, stream=3, z=a.code), thing(*[a] * 40))
        f["remember"](thing._table, (a, b, c), None, (), ((call, three, None, ()),), None)
        print(thing(a, b, c), thing(a, b, c, stream=4))
        for wrong in (lambda: Thing.__call__(3), lambda: f["run"](3, (), None), lambda: f["run"](), lambda: f["remember"](thing._table, (a,), None, (), ((call, ((5, 0),), None, ()),), None),
                      lambda: f["remember"](thing._table, (a,), None, 3, (), None), lambda: f["remember"](thing._table, (a,), None, (), ((call, (), None),), 7)):
            try:
                print("taken", wrong())
            except (TypeError, ValueError, SystemError) as error:
                print(type(error).__name__)
    """)
    assert said[:2] == ["(3, None, {}) (0, None, {}) (1, 3, {'z': 2}) (40, None, {})", "None (3, 4, {})"]
    assert len(said) == 8 and "taken" not in " ".join(said)
    assert launches == [["7", "10000", "20000", "30000"]]


def test_tables_that_are_filled_are_emptied_and_let_go(driver, tmp_path):
    run(driver, tmp_path, """
        import resource
        t = f["table"](True)
        for n in range(20000):
            a, b, c = vector(0x10000, n + 1), vector(0x20000, n + 1), vector(0x30000, n + 1)
            f["remember"](t, (a, b, c), None, (((n,), (1,), None),), ((call, three, None, ()),), None)
        assert f["run"](t, (a, b, c), None) is None and f["run"](t, (vector(0x10000, 1),) * 3, None) is NotImplemented
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for n in range(200000):
            f["run"](t, (a, b, c), None)
        for n in range(2000):
            u = f["table"](False)
            f["remember"](u, (a, b, "s"), {"k": n + 1000}, (((n,), (1,), None),), ((call, three, None, ()),), 0)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 4000, "memory grows"
    """, arguments=0)


def test_an_entry_lives_as_long_as_a_launch_of_it(driver, tmp_path):
    """While a thread launches, without the interpreter's lock, another replaces what was recorded."""
    body = """
        import threading
        t = f["table"](True)
        a, b, c = vector(0x10000), vector(0x20000), vector(0x30000)
        steps = ((call, three, None, ()),) * 50
        again = lambda: f["remember"](t, (a, b, c), None, (), steps, None)
        done = []
        def launches():
            for _ in range(300):
                assert f["run"](t, (a, b, c), None) is None
            done.append(1)
        again()
        threads = [threading.Thread(target=launches) for _ in range(3)]
        for one in threads: one.start()
        while any(one.is_alive() for one in threads): again()
        print(len(done))
    """
    said, _ = test_calls.run(driver, tmp_path, FAKES + test_calls.textwrap.dedent(body), 0)  # the log is of three threads: lines are mixed
    assert said.split() == ["3"]
