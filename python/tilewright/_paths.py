"""Where the program, the library, kernels and documents are: inside an installed package, or in the tree around this folder."""
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def root():
    """The folder that holds bin/, lib/, kernels/ and docs/ (of a wheel or of `make dist`), or the source tree."""
    inside = os.path.join(_HERE, "_dist")
    return inside if os.path.isdir(inside) else os.path.dirname(os.path.dirname(_HERE))


def _newest(patterns):
    import glob

    found = [f for pattern in patterns for f in glob.glob(os.path.join(root(), pattern))]
    return max(found, key=os.path.getmtime) if found else None


def library():
    """libtilewright.so: TILEWRIGHT_LIBRARY, else the package's, else the newest build of a source tree. None: there is none."""
    return os.environ.get("TILEWRIGHT_LIBRARY") or _newest(("lib/libtilewright.so", "build*/lib/libtilewright.so", "dist/*/lib/libtilewright.so"))


def program():
    """The tilewright binary, found in the same way. None: there is none."""
    return os.environ.get("TILEWRIGHT_PROGRAM") or _newest(("bin/tilewright", "build*/bin/tilewright", "dist/*/bin/tilewright"))


def kernels():
    """The folder of the kernels that come with the package."""
    return os.path.join(root(), "kernels")


def kernel_file(path):
    """A path as given, or the file of that name among the package's kernels."""
    path = os.fspath(path)
    if os.path.exists(path):
        return path
    for name in (path, path + ".py"):
        shipped = os.path.join(kernels(), name.removeprefix("kernels/") if hasattr(name, "removeprefix") else os.path.basename(name))
        if os.path.exists(shipped):
            return shipped
    return path


def cache():
    """The folder of compiled kernels and recorded verdicts, as the program has it."""
    given = os.environ.get("TILEWRIGHT_CACHE")
    if given:
        return given
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "tilewright")


def show_python_packages():
    """NVRTC may come from PyPI, with torch or alone: tells the library and the program where packages are."""
    packages = [p for p in sys.path if p and os.path.isdir(os.path.join(p, "nvidia"))]
    if packages and "TILEWRIGHT_PYTHON_PATH" not in os.environ:
        os.environ["TILEWRIGHT_PYTHON_PATH"] = ":".join(packages)
