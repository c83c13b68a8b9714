"""What a tensor argument is: address, type, dimensions, strides and place, from torch or through DLPack."""
import ctypes
import sys

from ._library import TilewrightError

_TORCH = {"torch.float32": b"f32", "torch.float16": b"f16", "torch.bfloat16": b"bf16", "torch.float64": b"f64", "torch.int32": b"i32",
          "torch.int64": b"i64", "torch.int16": b"i16", "torch.int8": b"i8", "torch.uint8": b"u8", "torch.bool": b"bool",
          "torch.float8_e4m3fn": b"e4m3", "torch.float8_e5m2": b"e5m2"}
# (DLPack type code, bits): 0 signed, 1 unsigned, 2 float, 4 bfloat, 6 bool
_DLPACK = {(0, 8): b"i8", (0, 16): b"i16", (0, 32): b"i32", (0, 64): b"i64", (1, 8): b"u8", (1, 32): b"u32", (2, 16): b"f16", (2, 32): b"f32",
           (2, 64): b"f64", (4, 16): b"bf16", (6, 8): b"bool"}
HOST = -1  # the place of memory that the CPU reads; a GPU's is its number


class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


def torch_module():
    return sys.modules.get("torch")


def is_torch(value):
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _fill(out, name, address, dtype, dims, strides):
    if len(dims) > 8:
        raise TilewrightError(1, f"{name} has {len(dims)} dimensions; up to 8 are taken")
    out.address, out.dtype, out.rank = address, dtype, len(dims)
    out.dims[:len(dims)] = dims
    out.strides[:len(dims)] = strides


def describe(out, name, value):
    """Fills `out`; gives what must stay alive until the launch, and the place of the memory."""
    if is_torch(value):
        if value.device.type not in ("cuda", "cpu"):
            raise TilewrightError(1, f"{name} is on {value.device}\n  fix: move it to the GPU ({name}.cuda()) or to the CPU")
        dtype = _TORCH.get(str(value.dtype))
        if getattr(value, "tilewright_dtype", None) == "tf32" and dtype == b"f32":  # a buffer that a kernel wrote as tf32: f32 in memory
            dtype = b"tf32"
        if dtype is None:
            raise TilewrightError(1, f"{name} has the type {value.dtype}, which kernels do not take")
        _fill(out, name, value.data_ptr(), dtype, value.shape, value.stride())
        return value, value.device.index if value.is_cuda else HOST
    if not hasattr(value, "__dlpack__"):
        raise TilewrightError(1, f"{name} is {type(value).__name__}; a tensor (torch, numpy, or anything with __dlpack__) is expected")
    on_host = hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] == 1
    try:
        capsule = value.__dlpack__() if on_host else value.__dlpack__(stream=current_stream() or 1)   # 1: the legacy default stream
    except TypeError:
        capsule = value.__dlpack__()
    except Exception as error:  # the producer's own words: not on a GPU, needs a gradient, ...
        raise TilewrightError(1, f"{name} does not give its memory through DLPack: {error}") from error
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    try:
        pointer = get(capsule, b"dltensor")
    except ValueError:
        raise TilewrightError(1, f"{name} gives a DLPack capsule that was used already, or of a version that is not taken") from None
    t = ctypes.cast(pointer, ctypes.POINTER(_DLTensor)).contents
    if t.device_type not in (1, 2, 3, 13):  # CPU, CUDA, CUDA's host memory, CUDA managed
        raise TilewrightError(1, f"{name} is neither in CUDA memory nor in the CPU's")
    dtype = _DLPACK.get((t.code, t.bits)) if t.lanes == 1 else None
    if dtype is None:
        raise TilewrightError(1, f"{name} has a type that kernels do not take (DLPack code {t.code}, {t.bits} bits)")
    dims = [t.shape[i] for i in range(t.ndim)]
    strides = [t.strides[i] for i in range(t.ndim)] if t.strides else _row_major(dims)
    _fill(out, name, (t.data or 0) + t.byte_offset, dtype, dims, strides)
    return (capsule, value), t.device_id if t.device_type in (2, 13) else HOST


def one_place(names, places):
    """All tensors are in one place: HOST or a GPU, which must be torch's current one."""
    for name, place in zip(names, places):
        if place != places[0]:
            where = {HOST: "the CPU's memory"}
            raise TilewrightError(1, f"{names[0]} is in {where.get(places[0], f'cuda:{places[0]}')}, {name} in {where.get(place, f'cuda:{place}')}\n  fix: move them to one place")
    place = places[0] if places else HOST
    torch = torch_module()
    if place != HOST and torch is not None and torch.cuda.is_available() and place != torch.cuda.current_device():
        raise TilewrightError(1, f"{names[0]} is on cuda:{place}, the current device is cuda:{torch.cuda.current_device()}\n  fix: with torch.cuda.device({names[0]}.device): ...")
    return place


def _row_major(dims):
    strides, step = [], 1
    for d in reversed(dims):
        strides.append(step)
        step *= d
    return strides[::-1]


def current_stream():
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return 0
    return torch._C._cuda_getCurrentRawStream(torch.cuda.current_device())
