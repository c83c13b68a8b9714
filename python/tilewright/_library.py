"""libtilewright.so and its C interface (runtime/capi.h)."""
import ctypes
import glob
import os
import sys
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_uint32, c_uint64, c_void_p

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
    named = os.environ.get("TILEWRIGHT_LIBRARY")
    if named:
        return named
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    found = []
    for pattern in ("lib/libtilewright.so", "build*/lib/libtilewright.so", "dist/*/lib/libtilewright.so"):
        found += glob.glob(os.path.join(root, pattern))
    if not found:
        raise TilewrightError(2, "libtilewright.so was not found\n  fix: build it (make), or set TILEWRIGHT_LIBRARY")
    return max(found, key=os.path.getmtime)


_loaded = None


def library():
    global _loaded
    if _loaded is not None:
        return _loaded
    packages = [p for p in sys.path if p and os.path.isdir(os.path.join(p, "nvidia"))]
    if packages and "TILEWRIGHT_PYTHON_PATH" not in os.environ:  # NVRTC may come with torch
        os.environ["TILEWRIGHT_PYTHON_PATH"] = ":".join(packages)
    lib = ctypes.CDLL(library_path())
    signatures = {
        "tw_abi_version": (c_int, []),
        "tw_version": (c_char_p, []),
        "tw_last_error": (c_char_p, []),
        "tw_module_load": (c_int, [c_char_p, POINTER(c_void_p)]),
        "tw_module_describe": (c_char_p, [c_void_p]),
        "tw_module_source": (c_int, [c_void_p, c_uint32, POINTER(c_char_p)]),
        "tw_module_free": (None, [c_void_p]),
        "tw_module_launch": (c_int, [c_void_p, c_char_p, POINTER(Tensor), c_uint32, POINTER(c_double), c_uint32, c_void_p]),
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
