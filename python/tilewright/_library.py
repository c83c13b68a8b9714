"""libtilewright.so and its C interface (runtime/capi.h)."""
import ctypes
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

from . import _paths

ABI_VERSION = 1


class TilewrightError(RuntimeError):
    """What the library reported. `code` is one of the TW_ERROR_* numbers of runtime/capi.h."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Tensor(ctypes.Structure):
    _fields_ = [("address", c_uint64), ("dtype", c_char_p), ("rank", c_uint32), ("dims", c_int64 * 8), ("strides", c_int64 * 8)]


def library_path():
    """TILEWRIGHT_LIBRARY, else beside this package (an installed folder), else the newest build of a source tree."""
    found = _paths.library()
    if not found:
        raise TilewrightError(2, "libtilewright.so was not found\n  fix: build it (make), or set TILEWRIGHT_LIBRARY")
    return found


_loaded = None


def library():
    global _loaded
    if _loaded is not None:
        return _loaded
    _paths.show_python_packages()
    lib = ctypes.CDLL(library_path())
    arguments = [c_void_p, c_char_p, POINTER(Tensor), c_uint32, POINTER(c_double), c_uint32]
    signatures = {
        "tw_abi_version": (c_int, []),
        "tw_version": (c_char_p, []),
        "tw_last_error": (c_char_p, []),
        "tw_module_load": (c_int, [c_char_p, POINTER(c_void_p)]),
        "tw_module_describe": (c_char_p, [c_void_p]),
        "tw_module_source": (c_int, [c_void_p, c_uint32, POINTER(c_char_p)]),
        "tw_module_free": (None, [c_void_p]),
        "tw_module_launch": (c_int, [*arguments, c_void_p]),
        "tw_module_emulate": (c_int, arguments),
        "tw_module_choose": (c_int, [*arguments, POINTER(c_char_p)]),
        "tw_call_create": (c_int, [*arguments, POINTER(c_void_p)]),
        "tw_call_workspace_bytes": (c_size_t, [c_void_p]),
        # Addresses and scalars as packed bytes: made anew for every launch, so threads do not meet.
        "tw_call_launch": (c_int, [c_void_p, c_char_p, c_char_p, c_uint64, c_void_p]),
        "tw_call_free": (None, [c_void_p]),
    }
    for name, (result, arguments) in signatures.items():
        call = getattr(lib, name)
        call.restype, call.argtypes = result, arguments
    if lib.tw_abi_version() != ABI_VERSION:
        raise TilewrightError(70, f"{lib._name} has ABI {lib.tw_abi_version()}, this package expects {ABI_VERSION}: rebuild it")
    _loaded = lib
    return lib


def version():
    return library().tw_version().decode()


def check(code):
    if code != 0:
        raise TilewrightError(code, library().tw_last_error().decode(errors="replace"))
