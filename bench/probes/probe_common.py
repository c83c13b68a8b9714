"""What the probe families share: rows, comparisons, integers as bit patterns, fragments as registers."""
import ctypes
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import torch  # noqa: E402

import harness as tw  # noqa: E402

FIXED = os.path.join(HERE, "target_probes.cu")
POISON = 0xCD
DEVICE = "cuda"


def versions():
    driver = ctypes.c_int()
    ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(driver))
    return {"gpu": torch.cuda.get_device_name(0), "driver_api": driver.value, "torch": torch.__version__}


def row(instruction, variant, checked, differences, first=""):
    r = {"instruction": instruction, "variant": variant, "checked": int(checked), "differences": int(differences)}
    if differences:
        r["first"] = first
    return r


def compare(instruction, variant, got, expected, describe=None):
    """got and expected: integer tensors of one shape (bit patterns or exact values)."""
    got, expected = got.cpu().reshape(-1), expected.cpu().reshape(-1)
    if got.numel() != expected.numel():
        return row(instruction, variant, expected.numel(), max(1, expected.numel()), f"sizes {got.numel()} and {expected.numel()}")
    wrong = (got != expected).nonzero().reshape(-1)
    first = ""
    if wrong.numel():
        at = wrong[:: max(1, wrong.numel() // 8)].tolist()
        first = "; ".join(f"at {describe(i) if describe else i}: got {got[i].item()}, expected {expected[i].item()}" for i in at)
    return row(instruction, variant, expected.numel(), wrong.numel(), first)


def vector(first, count):
    """Operands of inline assembly: {%first, ...}."""
    return "{" + ",".join(f"%{first + i}" for i in range(count)) + "}"


def fixed(entry):
    return tw.compile(FIXED, entry=entry)


def i32s(values):
    return torch.tensor([v - (1 << 32) if v >= 1 << 31 else v for v in values], dtype=torch.int32)


_tensors = {}


def table(values):
    """A list of the cases as a tensor, converted once."""
    key = id(values)
    if key not in _tensors:
        _tensors[key] = (values, torch.tensor(values))  # the list is kept, so its id stays its own
    return _tensors[key][1]


def as_bytes(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8)


# ---------------------------------------------------------------------------------------------------------------------
# Small integers as bit patterns of each element type

RANGE = {"bf16": 127, "f16": 500, "tf32": 1000, "f32": 1000, "e4m3": 15, "e5m2": 7, "i8": 127, "u8": 255, "i32": 1000}
UNSIGNED = {"u8"}
STORAGE = {"bf16": torch.int16, "f16": torch.int16, "tf32": torch.int32, "f32": torch.int32, "e4m3": torch.uint8,
           "e5m2": torch.uint8, "i8": torch.uint8, "u8": torch.uint8, "i32": torch.int32}


def small_float_bits(value, exponent_bits, fraction_bits):
    """Exact encoding of an integer; only for values the format holds."""
    if value == 0:
        return 0
    magnitude, exponent = abs(value), abs(value).bit_length() - 1
    fraction = (magnitude << fraction_bits >> exponent) - (1 << fraction_bits) if fraction_bits >= exponent else None
    assert fraction is not None and (fraction + (1 << fraction_bits)) << exponent >> fraction_bits == magnitude, value
    bias = (1 << (exponent_bits - 1)) - 1
    sign = (1 << (exponent_bits + fraction_bits)) if value < 0 else 0
    return sign | (exponent + bias) << fraction_bits | fraction


FORMATS = {"bf16": (8, 7), "f16": (5, 10), "tf32": (8, 23), "f32": (8, 23), "e4m3": (4, 3), "e5m2": (5, 2)}
_luts = {}


def encode(values, dtype):
    """int64 tensor of small integers -> tensor of the element's bit patterns."""
    if dtype not in FORMATS:
        return (values & (0xFF if STORAGE[dtype] == torch.uint8 else 0xFFFFFFFF)).to(torch.int64).to(
            torch.uint8) if STORAGE[dtype] == torch.uint8 else values.to(STORAGE[dtype])
    if dtype not in _luts:
        limit = RANGE[dtype]
        patterns = [small_float_bits(v, *FORMATS[dtype]) for v in range(-limit, limit + 1)]
        width = {torch.uint8: 8, torch.int16: 16, torch.int32: 32}[STORAGE[dtype]]
        if width > 8:
            patterns = [p - (1 << width) if p >> (width - 1) else p for p in patterns]
        _luts[dtype] = torch.tensor(patterns, dtype=STORAGE[dtype])
    return _luts[dtype][values + RANGE[dtype]]


def integers(generator, shape, dtype, limit=None):
    limit = min(limit or RANGE[dtype], RANGE[dtype])
    low = 0 if dtype in UNSIGNED else -limit
    return torch.randint(low, limit + 1, shape, generator=generator)


def one_hot(rows, cols):
    """Row i has a single 1 at column i mod cols."""
    m = torch.zeros((rows, cols), dtype=torch.int64)
    m[torch.arange(rows), torch.arange(rows) % cols] = 1
    return m


def registers(matrix, fragment, dtype):
    """The matrix as each thread's 32-bit registers: int32 [threads, registers]."""
    at = table(fragment["at"]).reshape(fragment["threads"], fragment["values"], 2)
    patterns = encode(matrix[at[..., 0], at[..., 1]], dtype)
    return patterns.contiguous().view(torch.int32).reshape(fragment["threads"], -1)


def accumulator_values(out, fragment, dtype):
    """int32 [threads, registers] -> the values as int64 and the coordinates they belong to."""
    view = {"f32": torch.float32, "f16": torch.float16, "i32": torch.int32}[dtype]
    values = out.cpu().contiguous().reshape(fragment["threads"], -1).view(view).reshape(fragment["threads"], fragment["values"])
    at = table(fragment["at"]).reshape(fragment["threads"], fragment["values"], 2)
    return values.to(torch.float64), at


def compare_product(instruction, variant, out, fragment, dtype, expected):
    values, at = accumulator_values(out, fragment, dtype)
    wanted = expected[at[..., 0], at[..., 1]].to(torch.float64)
    wrong = (values != wanted).nonzero()
    first = ""
    if wrong.numel():
        t, v = wrong[0].tolist()
        first = (f"thread {t} value {v} = element ({at[t, v, 0].item()}, {at[t, v, 1].item()}): got {values[t, v].item()}, "
                 f"expected {wanted[t, v].item()}")
    return row(instruction, variant, wanted.numel(), wrong.shape[0], first)
