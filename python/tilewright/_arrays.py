"""The little that the operations need of an array library: torch, or numpy where there is no torch."""
import sys


class Unfit(Exception):
    """No kernel takes these arguments; the text says why."""


_TO_TORCH = {"f32": "float32", "bf16": "bfloat16", "f16": "float16", "f64": "float64", "i32": "int32", "i64": "int64",
             "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "i8": "int8", "u8": "uint8"}


class TorchArrays:
    """torch.Tensor, on a GPU or on the CPU."""

    def __init__(self, torch):
        self.torch = torch
        self.name_of = {getattr(torch, long): short for short, long in _TO_TORCH.items() if hasattr(torch, long)}
        self.name_of[torch.bool] = "bool"

    def dtype(self, x):
        return self.name_of.get(x.dtype, str(x.dtype))

    def empty(self, shape, dtype, like):
        return self.torch.empty(shape, dtype=getattr(self.torch, _TO_TORCH[dtype]), device=like.device)

    def full(self, shape, value, dtype, like):
        return self.torch.full(shape, value, dtype=getattr(self.torch, _TO_TORCH[dtype]), device=like.device)

    def cast(self, x, dtype):
        return x.to(getattr(self.torch, _TO_TORCH[dtype]))

    def contiguous(self, x):
        # A view may begin anywhere; kernels read whole vectors of 16 bytes.
        x = x.contiguous()
        return x.clone() if x.numel() and x.data_ptr() % 16 else x

    def is_contiguous(self, x):
        return x.is_contiguous()

    def transposed(self, x):
        return x.transpose(-1, -2)

    def moved(self, x, source, target):
        return x.movedim(source, target)

    def repeated(self, x, times):
        return x if times == 1 else x.repeat(times, 1)

    def spread(self, x, shape):
        return x.expand(shape)

    def size(self, x):
        return x.numel()

    def begins_at_a_vector(self, x):
        return x.data_ptr() % 16 == 0

    def indices(self, x):
        if x.is_floating_point() or x.is_complex():
            raise Unfit(f"indices are whole numbers, these are {self.dtype(x)}")
        if x.device.type == "cpu" and x.dtype == self.torch.int64 and x.numel() and not -1 << 31 <= int(x.min()) <= int(x.max()) < 1 << 31:
            raise Unfit("an index is beyond 32 bits")  # on a GPU nobody waits for what they are
        return self.cast(x, "i32")

    def key(self, x):
        return (x.dtype, x.shape, x.stride())


class NumpyArrays:
    """numpy.ndarray: the CPU's memory, in the types that numpy has."""

    _NAMES = {"float32": "f32", "float16": "f16", "float64": "f64", "int32": "i32", "int64": "i64", "int8": "i8", "uint8": "u8", "bool": "bool"}

    def __init__(self, numpy):
        self.numpy = numpy

    def dtype(self, x):
        return self._NAMES.get(str(x.dtype), str(x.dtype))

    def empty(self, shape, dtype, like):
        # Room to begin at a multiple of 16 bytes, which numpy does not promise.
        import math

        kind = self.numpy.dtype(_TO_TORCH[dtype])
        room = self.numpy.empty(math.prod(shape) * kind.itemsize + 16, self.numpy.uint8)
        begin = -room.ctypes.data % 16
        return room[begin:begin + math.prod(shape) * kind.itemsize].view(kind).reshape(shape)

    def full(self, shape, value, dtype, like):
        out = self.empty(shape, dtype, like)
        out[...] = value
        return out

    def cast(self, x, dtype):
        return self.contiguous(x.astype(_TO_TORCH[dtype]))

    def contiguous(self, x):
        if x.flags.c_contiguous and x.ctypes.data % 16 == 0 and x.flags.writeable:
            return x
        out = self.empty(x.shape, self.dtype(x), x)
        out[...] = x
        return out

    def is_contiguous(self, x):
        return x.flags.c_contiguous

    def transposed(self, x):
        return x.swapaxes(-1, -2)

    def moved(self, x, source, target):
        return self.numpy.moveaxis(x, source, target)

    def repeated(self, x, times):
        return x if times == 1 else self.numpy.tile(x, (times, 1))

    def spread(self, x, shape):
        return self.numpy.broadcast_to(x, shape)

    def size(self, x):
        return x.size

    def begins_at_a_vector(self, x):
        return x.ctypes.data % 16 == 0

    def indices(self, x):
        if x.dtype.kind not in "iub":
            raise Unfit(f"indices are whole numbers, these are {self.dtype(x)}")
        if x.size and not -1 << 31 <= int(x.min()) <= int(x.max()) < 1 << 31:
            raise Unfit("an index is beyond 32 bits")
        return self.cast(x, "i32")

    def key(self, x):
        return (str(x.dtype), x.shape, x.strides)


_known = {}


def arrays_of(x):
    """The library of an argument."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(x, torch.Tensor):
        if "torch" not in _known:
            _known["torch"] = TorchArrays(torch)
        return _known["torch"]
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(x, numpy.generic):
        raise TypeError(f"a numpy array is expected, the scalar {type(x).__name__} was given: numpy.asarray makes one of it")
    if numpy is not None and isinstance(x, numpy.ma.MaskedArray):
        raise TypeError("a numpy array without a mask is expected: kernels would read what is masked")
    if numpy is not None and isinstance(x, numpy.ndarray):
        if "numpy" not in _known:
            _known["numpy"] = NumpyArrays(numpy)
        return _known["numpy"]
    raise TypeError(f"a torch tensor or a numpy array is expected, {type(x).__name__} was given")
